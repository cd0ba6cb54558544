"""Containers by name: create, hand over, start, wait, listen, remove. Blocking; any thread."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codetape.adapters.sandbox.podman.attached import Attached
from codetape.adapters.sandbox.podman.service import Missing, Service, quoted
from codetape.engine.ports import SandboxBroken

OWNER = "codetape.owner"  # label of a container: the process that it belongs to
TRIES = (0.0, 0.2, 1.0, 3.0)  # seconds before each try to remove
POLL = "20ms"  # between two looks of podman at a container that we wait for; its own default is 250
LOGGED = (
    128 << 20
)  # bytes of log: far above what process 1 may write, so that nothing is rotated out

_log = logging.getLogger("codetape.sandbox")


class Containers:
    """The containers of one sandbox."""

    def __init__(self, service: Service, labels: Mapping[str, str]) -> None:
        self._service = service
        self._labels = dict(labels)
        self._left: set[str] = set()

    def create(self, name: str, spec: dict[str, Any]) -> None:
        """Create a container that gets nothing from the host. Raises Missing without its image."""
        common = {
            "name": name,
            "labels": {**self._labels, **spec.pop("labels", {})},
            "command": [],
            "httpproxy": False,  # podman would hand on the host's proxy variables
            "image_volume_mode": "ignore",  # volumes of a base image would be places to write
            "systemd": "false",
            "log_configuration": {"driver": "k8s-file", "size": LOGGED},
        }
        try:
            self._service.post("/containers/create", data={**common, **spec})
        except SandboxBroken as error:
            if "image not known" in error.failure.message:
                raise Missing(error.failure.message) from error
            raise

    def put(self, name: str, tar: Iterator[bytes]) -> None:
        """Unpack a tar at the root of a container that has not started."""
        self._service.put(f"/containers/{name}/archive", params={"path": "/"}, data=tar)

    def start(self, name: str) -> None:
        """Start. What it does from here on is seen by `wait` and `said`, however soon it ends."""
        self._service.post(f"/containers/{name}/start")

    def attach(self, name: str) -> Attached:
        """Open a line to a container that runs and has standard input."""
        streams = "stream=true&stdin=true&stdout=true&stderr=true"
        return Attached(self._service.upgraded(f"/containers/{name}/attach?{streams}"))

    def place(self, name: str, target: str) -> Path | None:
        """Return where the volume at `target` lies on this machine; None if we cannot write there."""
        mounts = self._service.get(f"/containers/{name}/json").json()["Mounts"]
        found = [Path(each["Source"]) for each in mounts if each["Destination"] == target]
        return next((path for path in found if path.is_dir() and os.access(path, os.W_OK)), None)

    def wait(self, name: str, seconds: float) -> int | None:
        """Wait for the end; returns the exit status, None if it did not come within `seconds`."""
        try:
            response = self._service.post(
                f"/containers/{name}/wait", params={"interval": POLL}, timeout=seconds
            )
        except TimeoutError:
            return None
        return int(response.json())

    def kill(self, name: str) -> None:
        """End the whole process tree; one that does not run is left as it is."""
        with contextlib.suppress(Missing, SandboxBroken):
            self._service.post(f"/containers/{name}/kill", params={"signal": "KILL"})

    def killed_for_memory(self, name: str) -> bool:
        """Say whether podman saw it; where the runtime does not tell podman, this is false."""
        return bool(self._service.get(f"/containers/{name}/json").json()["State"]["OOMKilled"])

    def said(self, name: str, *, stderr: bool = False) -> bytes:
        """Return what process 1 wrote to one of its streams."""
        params = {"stdout": str(not stderr).lower(), "stderr": str(stderr).lower()}
        return unframed(self._service.get(f"/containers/{name}/logs", params=params).content)

    def archive(self, name: str, path: str) -> Iterator[bytes]:
        """Yield a tar of `path` in the container. Raises Missing."""
        response = self._service.get(
            f"/containers/{name}/archive", params={"path": path}, stream=True
        )
        return self._service.chunks(response)

    def commit(self, name: str, repository: str, tag: str, changes: list[str]) -> None:
        """Make an image of a container that has ended."""
        params = {"container": name, "repo": repository, "tag": tag, "changes": changes}
        self._service.post("/commit", params={**params, "format": "oci"}, timeout=600.0)

    def remove(self, name: str) -> None:
        """Remove a container and its volumes, whatever it does. A failure is noted for `sweep`."""
        error: Exception | None = None
        for pause in TRIES:
            time.sleep(pause)
            try:
                self.kill(name)  # a removal by force alone waits ten seconds for a polite end
                self._service.delete(
                    f"/containers/{name}", params={"force": "true", "v": "true", "volumes": "true"}
                )
            except Missing:
                error = None
            except (SandboxBroken, TimeoutError) as failure:
                error = failure
                continue
            self._left.discard(name)
            return
        self._left.add(name)
        _log.warning("container %s could not be removed, and is tried again: %s", name, error)

    def left(self) -> tuple[str, ...]:
        """Name the containers that could not be removed so far."""
        return tuple(self._left)

    def ours(self) -> list[tuple[str, str]]:
        """List (name, owner) of every container that some codetape made."""
        filters = json.dumps({"label": [OWNER]})
        found = self._service.get(
            "/containers/json", params={"all": "true", "filters": filters}
        ).json()
        return [(each["Names"][0], each["Labels"].get(OWNER, "")) for each in found or ()]


def image_facts(service: Service, name: str) -> dict[str, Any] | None:
    """Return what podman knows of an image here, None if it is not here."""
    try:
        facts: dict[str, Any] = service.get(f"/images/{quoted(name)}/json").json()
    except Missing:
        return None
    return facts


def unframed(data: bytes) -> bytes:
    """Take podman's frames apart: eight bytes of header, the last four of them the size."""
    body, at = [], 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        body.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return b"".join(body)
