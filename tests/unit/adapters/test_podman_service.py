"""Where podman is looked for, and what is said when it is not there or goes away."""

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox.podman import service as module
from codetape.adapters.sandbox.podman.containers import Containers, unframed
from codetape.adapters.sandbox.podman.service import Missing, Service, candidates
from codetape.engine.ports import SandboxBroken
from tests.support.podman_server import podman_server

Host = Callable[..., Service]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Services on a host without a podman command; its only socket is below tmp_path."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(
        module,
        "candidates",
        lambda environment, user: candidates(environment, user)[: len(environment)],
    )
    made: list[Service] = []

    def make(**more: str) -> Service:
        made.append(Service({**more, "XDG_RUNTIME_DIR": str(tmp_path)}, patience=1.0))
        return made[-1]

    yield make
    for service in made:
        service.close()


def test_candidates_come_in_an_explicit_order() -> None:
    found = candidates({"CONTAINER_HOST": "tcp://x:1", "XDG_RUNTIME_DIR": "/run/user/7"}, 7)
    assert [each.url for each in found] == [
        "tcp://x:1",
        "unix:///run/user/7/podman/podman.sock",
        "unix:///run/podman/podman.sock",
    ]


def test_root_without_a_runtime_folder_has_no_made_up_socket() -> None:
    assert [each.url for each in candidates({}, 0)] == ["unix:///run/podman/podman.sock"]


def test_a_user_without_the_variable_has_the_usual_runtime_folder() -> None:
    assert candidates({}, 7)[0].url == "unix:///run/user/7/podman/podman.sock"


def test_without_podman_every_candidate_is_reported_with_its_reason(
    host: Host, tmp_path: Path
) -> None:
    refusing = tmp_path / "refusing"
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind(str(refusing))  # a socket that nobody listens on
    with pytest.raises(SandboxBroken) as caught:
        host(CONTAINER_HOST=f"unix://{refusing}").get("/info")
    failure = caught.value.failure
    assert failure.missing
    assert "apt-get install podman" in failure.message
    assert f"CONTAINER_HOST unix://{refusing}: " in failure.message
    assert "refused" in failure.message
    assert (
        f"rootless socket unix://{tmp_path}/podman/podman.sock: no such socket" in failure.message
    )


def test_a_file_that_is_no_socket_is_reported(host: Host, tmp_path: Path) -> None:
    (tmp_path / "podman").mkdir()
    (tmp_path / "podman" / "podman.sock").write_text("")
    with pytest.raises(SandboxBroken, match=r"podman\.sock: .*refused"):
        host().get("/info")


def test_c14_an_address_that_the_library_does_not_speak_names_the_remedy(host: Host) -> None:
    with pytest.raises(SandboxBroken, match="pip install --upgrade podman requests urllib3"):
        host(CONTAINER_HOST="http+nonsense://x").get("/info")


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh here")
def test_a_machine_that_ssh_does_not_reach_is_reported_at_once() -> None:
    assert "Connection refused" in module._try("ssh://nobody@127.0.0.1:9/podman.sock")[1]


def test_a_service_of_our_own_is_not_sent_to_the_one_that_does_not_answer(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "podman"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "asked: $CONTAINER_HOST." >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CONTAINER_HOST", "unix:///nowhere")
    monkeypatch.setattr(module, "STARTING", 0.3)
    with pytest.raises(SandboxBroken, match=r"own service: asked: \."):
        host(CONTAINER_HOST="unix:///nowhere").get("/info")


def test_the_first_candidate_that_answers_is_taken(host: Host, tmp_path: Path) -> None:
    with podman_server(tmp_path, lambda *_: (200, {"ok": 1})) as asked:
        service = host(CONTAINER_HOST="unix:///nonexistent")
        assert service.get("/info").json() == {"ok": 1}
        assert asked == ["GET /version", "GET /info"]


def test_a_podman_that_is_too_old_is_reported(host: Host, tmp_path: Path) -> None:
    with (
        podman_server(tmp_path, lambda *_: (200, {}), version="3.4.4"),
        pytest.raises(SandboxBroken, match=r"podman 3\.4\.4 is too old"),
    ):
        host().get("/info")


def test_what_is_not_there_is_no_broken_sandbox(host: Host, tmp_path: Path) -> None:
    with (
        podman_server(tmp_path, lambda *_: (404, {"message": "no such container"})),
        pytest.raises(Missing, match="no such container"),
    ):
        host().get("/containers/x/json")


def test_a_refusal_is_a_broken_sandbox_that_is_there(host: Host, tmp_path: Path) -> None:
    with (
        podman_server(tmp_path, lambda *_: (500, {"message": "storage is locked"})),
        pytest.raises(SandboxBroken, match="storage is locked") as caught,
    ):
        host().post("/containers/create", data={})
    assert not caught.value.failure.missing


def test_no_answer_in_time_is_told_from_a_lost_service(host: Host, tmp_path: Path) -> None:
    silent = threading.Event()
    with podman_server(tmp_path, lambda *_: (200, silent.wait(5.0))):
        service = host()
        with pytest.raises(TimeoutError):
            service.get("/info", timeout=0.1)
        silent.set()


def test_after_a_service_went_away_the_candidates_are_asked_again(
    host: Host, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    service = host(CONTAINER_HOST=f"unix://{first}/podman/podman.sock")
    with podman_server(first, lambda *_: (200, {})):
        service.get("/info")
    with pytest.raises(SandboxBroken, match="gone") as caught:
        service.get("/info")
    assert not caught.value.failure.missing
    with podman_server(tmp_path, lambda *_: (200, {"back": 1})):
        assert service.get("/info").json() == {"back": 1}


def test_what_was_not_asked_yet_is_asked_of_the_next_service(host: Host, tmp_path: Path) -> None:
    first = tmp_path / "first"
    service = host(CONTAINER_HOST=f"unix://{first}/podman/podman.sock")
    with podman_server(first, lambda *_: (200, {})):
        service.get("/info")
    with podman_server(tmp_path, lambda *_: (200, {"another": 1})):
        assert service.get("/info").json() == {"another": 1}


def test_a_service_that_hangs_up_is_a_broken_sandbox_with_the_reason(
    host: Host, tmp_path: Path
) -> None:
    def hang_up(method: str, path: str) -> tuple[int, object]:
        raise ConnectionError

    with (
        podman_server(tmp_path, hang_up),
        pytest.raises(SandboxBroken, match=r"any more: Remote end closed connection") as caught,
    ):
        host().get("/info")
    assert not caught.value.failure.missing


def test_a_closed_service_is_not_used(host: Host) -> None:
    service = host()
    service.close()
    service.close()
    with pytest.raises(SandboxBroken, match="the sandbox is closed"):
        service.get("/info")


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetape.adapters.sandbox.podman.containers.TRIES", (0.0, 0.01, 0.01))


@pytest.mark.usefixtures("no_pauses")
def test_a_removal_that_fails_twice_is_tried_again(host: Host, tmp_path: Path) -> None:
    left = [(500, {"message": "busy"}), (500, {"message": "busy"}), (200, [])]
    with podman_server(tmp_path, lambda m, _: left.pop(0) if m == "DELETE" else (409, {})):
        containers = Containers(host(), {})
        containers.remove("stubborn")
    assert left == []
    assert containers.left() == ()


@pytest.mark.usefixtures("no_pauses")
def test_a_removal_that_always_fails_is_reported_and_kept_in_mind(
    host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status = {"DELETE": 500}
    with podman_server(tmp_path, lambda m, _: (status.get(m, 200), {"message": "busy"})):
        containers = Containers(host(), {})
        containers.remove("stubborn")
        assert containers.left() == ("stubborn",)
        assert "stubborn" in caplog.text
        assert "busy" in caplog.text
        status["DELETE"] = 404
        containers.remove("stubborn")
    assert containers.left() == ()


def test_what_does_not_run_need_not_be_killed(host: Host, tmp_path: Path) -> None:
    with podman_server(tmp_path, lambda *_: (409, {"message": "not running"})) as asked:
        Containers(host(), {}).kill("ended")
    assert asked[-1] == "POST /containers/ended/kill"


def test_containers_are_created_without_the_proxies_of_the_host(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with podman_server(tmp_path, lambda *_: (201, {"Id": "1"})):
        service = host()
        sent: list[dict[str, object]] = []
        monkeypatch.setattr(service, "post", lambda path, data: sent.append(data))
        Containers(service, {"a": "b"}).create("name", {"image": "x", "labels": {"c": "d"}})
    assert sent[0]["httpproxy"] is False
    assert sent[0]["image_volume_mode"] == "ignore"
    assert sent[0]["labels"] == {"a": "b", "c": "d"}
    assert json.dumps(sent[0])


def test_frames_are_taken_apart() -> None:
    data = b"".join(
        bytes([1, 0, 0, 0]) + len(body).to_bytes(4, "big") + body
        for body in (b"one\n", b"\xff", b"")
    )
    assert unframed(data) == b"one\n\xff"
    assert unframed(data[:5]) == b""
