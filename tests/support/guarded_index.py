"""A package index on loopback that serves only those who have a password."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def guarded_index(password: str) -> Iterator[str]:
    """Serve version 1.0 of any distribution to "ann"; gives the address with her password in it."""
    expected = f"Basic {base64.b64encode(f'ann:{password}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="index"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            name = self.path.strip("/").split("/")[1]
            file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            page = f'<a href="/files/{name}/{file}">{file}</a>'.encode()
            body = _wheel(name) if self.path.startswith("/files/") else page
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://ann:{password}@127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _wheel(name: str) -> bytes:
    plain = name.replace("-", "_")
    files = {
        f"{plain}.py": "",
        f"{plain}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{plain}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in files)
    files[f"{plain}-1.0.dist-info/RECORD"] = record + f"{plain}-1.0.dist-info/RECORD,,\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made.getvalue()
