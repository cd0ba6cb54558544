"""Keys of images, names that are refused, and what a build may see of the host."""

import asyncio
import base64
import json
from pathlib import Path

import pytest

from codetape.adapters.sandbox.credentials import without_passwords
from codetape.adapters.sandbox.podman import PodmanSandbox, handed, images
from codetape.adapters.sandbox.podman.images import Stage, invalid, stages
from codetape.adapters.sandbox.podman.settings import BASE, MADE, Settings
from codetape.adapters.sandbox.podman.telling import Told
from codetape.engine.ports import SandboxBroken
from codetape.states.values import ImageSpec
from tests.sandboxes import BASE_IMAGES
from tests.support.podman_server import podman_server

SPEC = ImageSpec(
    base="base",
    python="3.12",
    requirements=("pandas==2.2", "pytest"),
    system_packages=("git",),
    commands=("echo one", "echo two"),
)


def last(spec: ImageSpec, base: str = "sha256:1") -> Stage:
    return stages(spec, base)[-1]


@pytest.mark.parametrize(
    "change",
    [
        {"python": "3.13"},
        {"python": None},
        {"requirements": ("pandas==2.3", "pytest")},
        {"requirements": ("pytest",)},
        {"system_packages": ()},
        {"system_packages": ("curl", "git")},
        {"commands": ("echo one",)},
        {"commands": ("echo two", "echo one")},
        {"requirements": ("pandas==2.2",), "commands": ("pytest", "echo one", "echo two")},
    ],
    ids=str,
)
def test_c10_the_key_covers_all_that_an_image_is_made_of(change: dict[str, object]) -> None:
    assert last(SPEC.model_copy(update=change)).key != last(SPEC).key


def test_c10_the_key_covers_the_content_of_the_base_and_not_its_name() -> None:
    assert last(SPEC, "sha256:2").key != last(SPEC).key
    assert last(SPEC.model_copy(update={"base": "other"})).key == last(SPEC).key


def test_c10_the_key_covers_the_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    before = last(SPEC).key
    monkeypatch.setattr(images, "BUILDER", 999)
    raised = last(SPEC).key
    monkeypatch.setattr(handed, "source", lambda _: b"another stage.py")
    assert len({before, raised, last(SPEC).key}) == 3


def test_other_python_packages_share_the_stages_before() -> None:
    other = SPEC.model_copy(update={"requirements": ("numpy", "pytest")})
    mine, theirs = stages(SPEC, "1"), stages(other, "1")
    assert [stage.kind for stage in mine] == ["tools", "system", "packages", "commands"]
    assert mine[:2] == theirs[:2]


def test_stages_without_content_are_left_out() -> None:
    assert [s.kind for s in stages(ImageSpec(base="", requirements=("a",)), "1")] == [
        "tools",
        "packages",
    ]
    assert [s.kind for s in stages(ImageSpec(base="", system_packages=("a",)), "1")] == [
        "tools",
        "system",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "pandas; id",
        "--index-url=http://x",
        "-r/etc/passwd",
        "a\nRUN b",
        "a b",
        "a @ http://x",
        "git+https://x",
        "./local",
        "",
        "a; python_version>'3'",
        "$(id)",
        "pandas\n",
    ],
)
def test_c2_what_is_no_requirement_reaches_no_installer(name: str) -> None:
    failure = invalid(ImageSpec(base="", requirements=("pytest", name)))
    assert failure is not None
    assert (failure.cause, failure.packages) == ("unknown_package", (name,))


@pytest.mark.parametrize(
    "name", ["git; id", "-o=x", "git-", "a\nb", "A", "", "git curl", "./x.deb", "git/sid", "git=1"]
)
def test_c2_what_is_no_system_package_reaches_no_installer(name: str) -> None:
    failure = invalid(ImageSpec(base="", system_packages=(name,)))
    assert failure is not None
    assert (failure.cause, failure.packages) == ("unknown_system_package", (name,))


def test_plain_names_pass() -> None:
    names = ("pandas[excel,aws]>=2,<3", "zope.interface", "a==1.0.*")
    assert invalid(ImageSpec(base="", requirements=names, system_packages=("g++", "lib2"))) is None


def test_an_image_forgets_the_owner_of_its_container() -> None:
    base = {"Id": "1", "Config": {"Env": ["PATH=/base/bin", "X=1"]}}
    stage = Stage("packages", "parent", "key", ("a", "b"), ('echo "quoted"\nline',))
    changes = images._changes(
        stage, base, Told(end={"python": "3.12", "executable": "/usr/bin/python3"})
    )
    assert 'LABEL "codetape.owner"=""' in changes
    assert "ENV PATH=/opt/venv/bin:/base/bin" in changes
    assert not any("\n" in change for change in changes)


HOST = {
    "AWS_SECRET_ACCESS_KEY": "canary",
    "HOME": "/home/me",
    "HTTPS_PROXY": "http://user:canary@proxy:3128",
    "OPENAI_API_KEY": "canary",
    "PATH": "/bin",
    "PIP_CERT": "/host/ca.pem",
    "PIP_EXTRA_INDEX_URL": "file:///opt/index",
    "PIP_FIND_LINKS": "/opt/wheels",
    "PIP_INDEX_URL": "https://index.example/simple",
    "UV_CACHE_DIR": "/cache",
}


def test_a_build_sees_only_where_packages_come_from() -> None:
    seen = Settings.read(HOST).environment
    assert {name for name in seen if name not in ("NO_COLOR", "LC_ALL")} == {
        "HTTPS_PROXY",
        "PIP_INDEX_URL",
        "UV_DEFAULT_INDEX",
    }
    assert seen["UV_DEFAULT_INDEX"] == HOST["PIP_INDEX_URL"]


def test_the_bundle_of_certificates_is_the_first_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    host = {"CODETAPE_CA_BUNDLE": str(tmp_path / "absent"), "PIP_CERT": str(tmp_path / "ca.pem")}
    assert Settings.read(host).certificates == tmp_path / "ca.pem"
    assert Settings.read({}).certificates is None


def test_the_base_image_is_a_setting() -> None:
    assert Settings.read({"CODETAPE_BASE_IMAGE": "mine:1"}).base == "mine:1"
    assert Settings.read({}).on("other:1").base == "other:1"


def test_the_script_and_the_tests_look_for_the_images_that_builds_take() -> None:
    script = (Path(__file__).parents[3] / "scripts/install-sandboxes.sh").read_text()
    said = dict(
        line.split("=", 1)
        for line in script.splitlines()
        if line.startswith(("SUITE=", "MADE=", "PULLED="))
    )
    suite = said["SUITE"].split()[0]
    assert said["MADE"].replace("$SUITE", suite) == MADE
    assert said["PULLED"] == BASE
    assert f"podman pull {BASE}" in script
    assert BASE_IMAGES == (MADE, BASE)


def test_a_log_keeps_no_password_of_an_address() -> None:
    said = "Looking at https://user:secret@index.example/simple and https://plain.example"
    kept = without_passwords(said)
    assert "secret" not in kept
    assert kept.endswith("https://***@index.example/simple and https://plain.example")


@pytest.mark.parametrize(
    "said",
    [
        "http://pa%2Fss-word@index.example/simple",
        "http://ann:pa%2Fss-word@index.example",
        "http://ann:p@ss-word@index.example/x",
        "> Authorization: Basic YW5uOnBhL3NzLXdvcmQ=",
        "'authorization': 'Bearer YW5uOnBhL3NzLXdvcmQ='",
        "sent YW5uOnBhL3NzLXdvcmQ= to it",
        "401 for user ann with pa/ss-word",
    ],
)
def test_a_log_keeps_no_credentials_in_any_form(said: str) -> None:
    host = {"UV_DEFAULT_INDEX": "https://ann:pa%2Fss-word@index.example/simple"}
    kept = without_passwords(said, host)
    assert "***" in kept
    for form in ("ss-word", "YW5uOnBh"):
        assert form not in kept


def test_a_stage_gets_only_the_settings_that_it_needs() -> None:
    host = {"PIP_INDEX_URL": "https://ann:pass@index.example", "HTTPS_PROXY": "http://proxy"}
    found = Settings.read(host)
    assert found.needed_by("packages").items() >= host.items()
    assert "PIP_INDEX_URL" not in found.needed_by("system")
    assert found.needed_by("system")["HTTPS_PROXY"] == "http://proxy"
    assert found.needed_by("commands") == {}


def test_commands_have_a_stage_after_all_installers() -> None:
    found = stages(SPEC, "1")
    assert [stage.kind for stage in found] == ["tools", "system", "packages", "commands"]
    assert [stage.commands for stage in found] == [(), (), (), SPEC.commands]


def test_the_registry_of_a_base_image_is_told_who_pulls(tmp_path: Path) -> None:
    """The secret reaches the registry, and no label, key or message."""
    home = {"XDG_RUNTIME_DIR": str(tmp_path), "REGISTRY_LOGIN": "ann:pa:ss"}

    def empty(_: str, path: str) -> tuple[int, object]:
        return (200, []) if path == "/containers/json" else (404, {"message": "no such image"})

    with podman_server(tmp_path, empty) as asked:
        sandbox = PodmanSandbox(environment=home, registry_secret="REGISTRY_LOGIN")
        try:
            with pytest.raises(SandboxBroken) as caught:
                asyncio.run(sandbox.build(ImageSpec(base="registry.example/team/python:3.12")))
        finally:
            asyncio.run(sandbox.close())
    (pull,) = [line for line in asked if "/images/pull" in line]
    login = json.loads(base64.urlsafe_b64decode(pull.partition(" as ")[2]))
    assert login == {"username": "ann", "password": "pa:ss"}
    assert "pa:ss" not in str(caught.value)
    assert all(" as " not in line for line in asked if line is not pull)
