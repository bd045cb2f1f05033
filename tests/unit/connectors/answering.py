"""A web server on this machine that answers as it is told to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct, field


class Asked(Struct, frozen=True):
    """One request; the names of `headers` are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Answer(Struct, frozen=True):
    """What is sent back; a value other than text is sent as JSON."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class AnsweringServer(Struct):
    """`asked`: every request in order."""

    url: str
    asked: list[Asked]


@contextmanager
def answering(answer: Callable[[Asked], Answer]) -> Iterator[AnsweringServer]:
    """Run a server whose answers `answer` gives, until the block ends."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            request = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            asked.append(request)
            given = answer(request)
            is_text = isinstance(given.body, str)
            data = (given.body if is_text else json.dumps(given.body)).encode()
            self.send_response(given.status)
            kind = "text/html" if is_text else "application/json; charset=UTF-8"
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **given.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield AnsweringServer(f"http://127.0.0.1:{server.server_port}", asked)
        finally:
            server.shutdown()
            thread.join()
