"""A small real HTTP server on loopback that speaks the OpenAI chat completions protocol.

It answers from a script, over a real socket, plain or as a stream of server-sent events, and keeps
what it was asked. Replies are taken in order; where the script is a mapping, the name of the JSON
schema that was asked for selects the list ("*" takes the rest).

    with ChatServer([Reply(status=429, headers={"Retry-After": "1"}), Reply({"answer": 42})]) as server:
        ...  # ask the server at server.base
        assert server.requests[0].body["model"] == "gpt-4.1"

By hand: `python -m tests.support.chat_server SCRIPT.json [PORT]`, where the script is a list of
replies, or a mapping of lists; a reply is an object with the fields of `Reply`.
"""

from __future__ import annotations

import json
import math
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.support.chat_replies import Json, Reply, Request, completion, events, halves

Script = Sequence[Reply] | Mapping[str, Sequence[Reply]]


class Dropped(Exception):
    """The connection ends here."""


class ChatServer:
    """The server; a context manager. `base` is the address that clients take as api_base.

    `key`: other bearer tokens are answered with 401. `models`: others are answered with 404.
    `context`: more characters of messages than this are answered with 400.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        key: str | None = None,
        models: Sequence[str] | None = None,
        context: float = math.inf,
        port: int = 0,
    ) -> None:
        queues = script if isinstance(script, Mapping) else {"*": script}
        self._queues = {kind: deque(replies) for kind, replies in queues.items()}
        self._lock = threading.Lock()
        self._key, self._models, self._context = key, models, context
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.chat = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self.requests: list[Request] = []
        self.asked = threading.Event()  # a request has come
        self.hung_up = threading.Event()  # a client went away before it had its answer
        self.closing = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def left_over(self) -> dict[str, int]:
        """How many replies are left, of each list that has some."""
        return {kind: len(queue) for kind, queue in self._queues.items() if queue}

    def take(self, request: Request) -> Reply:
        """Record a request and decide what to answer."""
        with self._lock:
            self.requests.append(request)
            self.asked.set()
            return self._refusal(request) or self._next(request)

    def _refusal(self, request: Request) -> Reply | None:
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            return refusal(401, "Incorrect API key provided", code="invalid_api_key")
        if not request.path.partition("?")[0].endswith("/chat/completions"):
            return refusal(404, f"Unknown address {request.path}")
        model = request.body.get("model")
        if self._models is not None and model not in self._models:
            return refusal(404, f"The model `{model}` does not exist", code="model_not_found")
        if len(json.dumps(request.body.get("messages"))) > self._context:
            limit = f"This model's maximum context length is {self._context} tokens"
            return refusal(400, limit, param="messages", code="context_length_exceeded")
        return None

    def _next(self, request: Request) -> Reply:
        asked = request.body.get("response_format", {}).get("json_schema", {}).get("name")
        queue = self._queues.get(asked) or self._queues.get("*")
        if not queue:
            return refusal(400, f"The script of the server has no reply left for {asked or '*'}")
        refused = next((name for name in queue[0].refuse if name in request.body), None)
        if refused is None:
            return queue.popleft()
        words = f"Unsupported parameter: '{refused}' is not supported with this model."
        return refusal(400, words, param=refused, code="unsupported_parameter")


def refusal(status: int, message: str, **members: Json) -> Reply:
    """Return a reply with OpenAI's error object."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return Reply(status=status, error={"message": message, "type": kind, **members})


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    chat: ChatServer

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that go away in the middle are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, *_: object) -> None:
        """Say nothing: a test asks for the requests if it wants them."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.chat.take(Request(self.path, headers, body))
        try:
            self._pause(reply.delay)
            self._answer(reply, body)
        except Dropped:
            self.close_connection = True
        except OSError:
            self.server.chat.hung_up.set()
            raise

    def _answer(self, reply: Reply, body: Mapping[str, Json]) -> None:
        if reply.cut == "at_once":
            raise Dropped
        if reply.page is not None:
            self._send(reply, "text/html", [reply.page])
        elif reply.status != 200:
            self._send(reply, "application/json", [json.dumps({"error": dict(reply.error)})])
        elif body.get("stream") and not reply.whole:
            self._send(reply, "text/event-stream", events(reply, body))
        else:
            self._send(reply, "application/json", halves(json.dumps(completion(reply, body))))

    def _send(self, reply: Reply, media: str, pieces: Sequence[str]) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.headers.get("Content-Type", media))
        self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:  # as the client has asked for; it may count on being told
            self.send_header("Connection", "close")
        self.send_header("x-request-id", f"req_{len(self.server.chat.requests)}")
        for name, value in reply.headers.items():
            if name != "Content-Type":
                self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            data = piece.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self._fail_if_asked(reply)
        self.wfile.write(b"0\r\n\r\n")

    def _fail_if_asked(self, reply: Reply) -> None:
        if reply.cut == "in_body":
            raise Dropped
        if reply.silent:
            self._pause(math.inf)

    def _pause(self, seconds: float) -> None:
        """Wait; ends early when the server closes or the client has gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.server.chat.closing.wait(min(left, 0.02)):
                raise Dropped
            if self._client_has_gone():
                self.server.chat.hung_up.set()
                raise Dropped

    def _client_has_gone(self) -> bool:
        self.connection.setblocking(False)
        try:
            left: bytes = self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        else:
            return not left
        finally:
            self.connection.setblocking(True)


def read_script(text: str) -> Script:
    """Return the replies of a JSON text: a list, or a mapping of lists, of `Reply` members."""
    script = json.loads(text)
    if isinstance(script, dict):
        return {kind: [Reply(**reply) for reply in replies] for kind, replies in script.items()}
    return [Reply(**reply) for reply in script]


def main(arguments: Sequence[str]) -> None:
    """Serve a script until interrupted."""
    script = read_script(Path(arguments[0]).read_text(encoding="utf-8"))
    port = int(arguments[1]) if len(arguments) > 1 else 0
    with ChatServer(script, port=port) as server:
        print(server.base, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{len(server.requests)} requests; left over: {server.left_over()}")


if __name__ == "__main__":
    main(sys.argv[1:])
