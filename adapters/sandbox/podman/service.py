"""The connection to podman, and the one file that knows its library.

Candidates are tried in an explicit order; where none answers, a service of our own is started and
ended with us. One client is shared by all threads. Every failure leaves as SandboxBroken, except
`Missing` (there is no such thing) and TimeoutError (no answer within the time given).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

from codetape.adapters.sandbox import leftovers
from codetape.engine.ports import SandboxBroken
from codetape.states.values import SandboxFailure

INSTALL = "install podman (Debian, Ubuntu: apt-get install podman; Fedora: dnf install podman)"
LIBRARY = "pip install --upgrade podman requests urllib3"
OLDEST = 4  # major version; the ones before lack the commit options and API that are used
STARTING = 20.0  # seconds that a service of our own may take to answer
CONNECTIONS = 64  # kept for reuse; more are made where they are needed
# The service ends with us, however we end: the pipe of its standard input is closed then.
OWN = 'podman system service --time=0 "$1" & read _; kill $!; wait'
ELSEWHERE = ("CONTAINER_HOST", "CONTAINER_CONNECTION")
UPGRADE = (
    "POST /v4.0.0/libpod{} HTTP/1.1\r\nHost: podman\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
    "Content-Length: 0\r\n\r\n"
)


class Missing(Exception):
    """Podman does not have it: a container, an image, a path."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a service may answer."""

    name: str
    url: str


def candidates(environment: Mapping[str, str], user: int) -> list[Candidate]:
    """Return where to ask, in order. Nothing is guessed: each place is named by a rule."""
    found = []
    if host := environment.get("CONTAINER_HOST"):
        found.append(Candidate("CONTAINER_HOST", host))
    runtime = environment.get("XDG_RUNTIME_DIR") or (f"/run/user/{user}" if user else "")
    if runtime:
        found.append(Candidate("rootless socket", f"unix://{runtime}/podman/podman.sock"))
    found.append(Candidate("rootful socket", "unix:///run/podman/podman.sock"))
    return found


def broken(message: str, *, missing: bool = False) -> SandboxBroken:
    """Make the one exception that a sandbox raises."""
    return SandboxBroken(SandboxFailure(message=message, missing=missing))


class Service:
    """Podman's API for many threads. Connects when first used, and again when it was lost."""

    def __init__(self, environment: Mapping[str, str], patience: float = 120.0) -> None:
        self._environment = environment
        self._patience = patience
        self._lock = threading.Lock()
        self._client: Any = None
        self._url = ""
        self._own: OwnService | None = None
        self._closed = False

    def get(self, path: str, **options: Any) -> Any:
        """Ask; returns the response. Options: params, timeout, stream."""
        return self._request("get", path, options)

    def post(self, path: str, **options: Any) -> Any:
        """Order; returns the response. `data` is bytes, an iterator of bytes, or made to JSON."""
        return self._request("post", path, options)

    def put(self, path: str, **options: Any) -> Any:
        """Hand over; returns the response."""
        return self._request("put", path, options)

    def delete(self, path: str, **options: Any) -> Any:
        """Remove; returns the response."""
        return self._request("delete", path, options)

    def _request(self, method: str, path: str, options: dict[str, Any]) -> Any:
        client = self._reached()
        if isinstance(options.get("data"), dict):
            options["data"] = json.dumps(options["data"])
        options.setdefault("timeout", self._patience)
        with self._translated(client):
            response = getattr(client.api, method)(path, **options)
        if response.status_code == 404:
            raise Missing(_reason(response))
        if response.status_code >= 400:
            message = f"podman: {_reason(response)}"
            raise broken(message)
        return response

    def _reached(self) -> Any:
        """Return a client whose service is there: nothing was asked of one that has gone meanwhile."""
        client, url = self._connected()
        if not (refusal := unreachable(url)):
            return client
        self._lost(client)
        try:
            return self._connected()[0]
        except SandboxBroken as error:
            message = f"the podman service is gone: {refusal}; {error.failure.message}"
            raise broken(message) from error

    @contextlib.contextmanager
    def _translated(self, client: Any) -> Iterator[None]:
        """Turn what podman-py and its transport raise into our own errors."""
        from podman.errors import PodmanError

        try:
            yield
        except (PodmanError, OSError) as error:
            causes = (error, error.__cause__)
            if any("Timeout" in type(cause).__name__ for cause in causes):
                raise TimeoutError(str(error)) from error
            self._lost(client)
            message = f"the podman service does not answer any more: {_root(error)}"
            raise broken(message) from error

    def chunks(self, response: Any) -> Iterator[bytes]:
        """Yield the body of a streamed response."""
        with self._translated(self._client), contextlib.closing(response):
            yield from response.iter_content(1 << 16)

    def upgraded(self, path: str) -> socket.socket:
        """Turn a request into a line in both directions, which podman-py cannot.

        Raises SandboxBroken, also where the service is not on a socket of this machine.
        """
        _, url = self._connected()
        if not url.startswith("unix://"):
            message = f"{url} is no socket of this machine"
            raise broken(message)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(self._patience)
            connection.connect(url.removeprefix("unix://"))
            connection.sendall(UPGRADE.format(path).encode())
            status, _, rest = _head(connection).partition(b"\r\n")
        except OSError as error:
            connection.close()
            message = f"the podman service does not answer: {error}"
            raise broken(message) from error
        if status.split()[1:2] not in ([b"101"], [b"200"]):
            connection.close()
            message = f"podman: {status.decode(errors='replace')} {rest.decode(errors='replace')}"
            raise broken(message)
        return connection

    def close(self) -> None:
        """End what is ours. May be called twice."""
        with self._lock:
            self._closed = True
            self._forget()

    def _lost(self, client: Any) -> None:
        """Forget a client whose service is gone; one failed request alone says nothing of others."""
        with self._lock:
            if self._client is client and unreachable(self._url):
                self._forget()

    def _forget(self) -> None:
        if self._client is not None:
            self._client.close()
        if self._own is not None:
            self._own.end()
        self._client = self._own = None

    def _connected(self) -> tuple[Any, str]:
        with self._lock:
            if self._closed:
                message = "the sandbox is closed"
                raise broken(message)
            if self._client is None:
                self._client, self._url = self._connect()
            return self._client, self._url

    def _connect(self) -> tuple[Any, str]:
        """Return a client of the first candidate that answers, and its address.

        Raises SandboxBroken(missing).
        """
        refusals = []
        for candidate in candidates(self._environment, os.geteuid()):
            client, refusal = _try(candidate.url)
            if client is not None:
                return client, candidate.url
            refusals.append(f"{candidate.name} {candidate.url}: {refusal}")
        if shutil.which("podman") is None:
            message = f"no podman: {INSTALL} ({'; '.join(refusals)}; no podman command)"
            raise broken(message, missing=True)
        self._own = OwnService()
        client, refusal = self._own.client()
        if client is None:
            self._forget()
            refusals.append(f"own service: {refusal}")
            message = f"podman does not work; `podman info` says why ({'; '.join(refusals)})"
            raise broken(message, missing=True)
        return client, self._own.url


def _try(url: str) -> tuple[Any, str]:
    """Return a client that has had an answer, or None and the reason."""
    if refusal := unreachable(url) or _no_tunnel(url):
        return None, refusal
    client = None
    try:
        client = library().PodmanClient(base_url=url, timeout=30.0, max_pool_size=CONNECTIONS)
        version = str(client.version()["Version"])
    except SandboxBroken:
        raise
    except Exception as error:  # noqa: BLE001 - a transport of another version may raise anything
        if client is not None:
            client.close()
        return None, _explained(error)
    if int(version.partition(".")[0]) < OLDEST:
        client.close()
        return None, f"podman {version} is too old: {OLDEST} or later is needed"
    return client, ""


def unreachable(url: str) -> str:
    """Say why nobody listens on a socket; nothing if somebody does, or if `url` is no socket.

    podman-py leaves its socket open when it cannot connect, so it is asked only where it can.
    """
    if not url.startswith("unix://"):
        return ""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(url.removeprefix("unix://"))
        except FileNotFoundError:
            return "no such socket"
        except OSError as error:
            return error.strerror or str(error)
    return ""


def _no_tunnel(url: str) -> str:
    """Say why ssh does not get there: podman-py would wait five minutes, and not say it."""
    where = urlsplit(url)
    if where.scheme.rpartition("+")[2] != "ssh":
        return ""
    options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "ConnectTimeout=10")
    try:
        tried = subprocess.run(
            ["ssh", *options, f"ssh://{where.netloc}", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STARTING,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return tried.stderr.strip()[-300:] if tried.returncode else ""


def library() -> Any:
    """Import podman-py, which takes a while: only when a container is wanted."""
    try:
        import podman
    except ImportError as error:
        message = f"the Python package podman is missing: {LIBRARY} ({error})"
        raise broken(message, missing=True) from error
    return podman


def _explained(error: BaseException) -> str:
    """Say what went wrong; an error of the transport is one of versions, not of podman."""
    text = _root(error)
    if "scheme" in text.lower() or isinstance(error, (TypeError, AttributeError, ImportError)):
        return f"podman-py cannot speak over its transport ({text}); mend it with: {LIBRARY}"
    return text


def _root(error: BaseException) -> str:
    """Return the words of the first error of a chain: the others only say that something failed."""
    while below := error.__cause__ or error.__context__:
        error = below
    return str(error) or type(error).__name__


class OwnService:
    """A `podman system service` that lives as long as we do, on a socket that only we can reach."""

    def __init__(self) -> None:
        self._folder = leftovers.make("podman")
        self.url = f"unix://{self._folder}/podman.sock"
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", OWN, "sh", self.url],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                # With one of these podman asks that service, and starts none.
                env={name: value for name, value in os.environ.items() if name not in ELSEWHERE},
                cwd=self._folder,  # where containers' monitors leave files
                start_new_session=True,  # Ctrl-C is for us: we still need it to clean up
            )

    def client(self) -> tuple[Any, str]:
        """Wait until the service answers; returns a client, or None and the reason."""
        until = time.monotonic() + STARTING
        refusal = ""
        while time.monotonic() < until:
            client, refusal = _try(self.url)
            if client is not None or self._process.poll() is not None:
                return client, refusal or self._said()
            time.sleep(0.05)
        return None, self._said() or refusal

    def _said(self) -> str:
        return (self._folder / "log").read_text(errors="replace").strip()[-500:]

    def end(self) -> None:
        """End the service and remove its socket."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _head(connection: socket.socket) -> bytes:
    """Read the head of an answer and not a byte more. Raises OSError."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < 1 << 16:
        byte = connection.recv(1)
        if not byte:
            message = "it hung up"
            raise ConnectionError(message)
        head += byte
    return head


def _reason(response: Any) -> str:
    """Return what podman says about a refusal."""
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{response.status_code} {response.text[:300]}"


def quoted(name: str) -> str:
    """Return the name of an image or container as one part of a path."""
    return quote_plus(name)
