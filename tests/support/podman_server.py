"""A podman service of a few answers, on a socket: for what a real one does not do on request."""

import contextlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

VERSION = {"ApiVersion": "1.41", "Components": []}
Answer = Callable[[str, str], tuple[int, Any]]


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 4096  # as many as a real one lets wait: what Linux allows
    answer: Answer
    asked: list[str]
    version: dict[str, Any]
    connections: list[socket.socket]

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that did not wait


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("libpod")[2].partition("?")[0]
        login = self.headers.get("X-Registry-Auth")
        self.server.asked.append(f"{self.command} {path}" + (f" as {login}" if login else ""))
        status, body = (
            (200, self.server.version)
            if path == "/version"
            else self.server.answer(self.command, path)
        )
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _reply  # noqa: N815 - names of the base class

    def address_string(self) -> str:
        return "socket"  # the base class takes an address and a port apart

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def podman_server(folder: Path, answer: Answer, version: str = "4.3.1") -> Iterator[list[str]]:
    """Serve `answer(method, path) -> (status, JSON)` on folder/podman/podman.sock.

    Yields the list of what was asked for.
    """
    path = folder / "podman" / "podman.sock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _Server(os.fspath(path), _Handler) as server:
        server.version = {**VERSION, "Version": version}
        server.answer, server.asked, server.connections = answer, [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.asked
        finally:
            server.shutdown()
            thread.join()
            path.unlink()
            for connection in tuple(server.connections):
                with contextlib.suppress(OSError):  # its thread ends it at this moment, too
                    connection.shutdown(socket.SHUT_RDWR)
