"""A stand-in for a service over HTTP: a real server on loopback that can be told to misbehave as servers and networks do."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, field

PAGE = b"<html><style>p {}</style><body><h1>Access denied</h1> <p>by the proxy.</p></body></html>"


class TakenRequest(Struct, frozen=True):
    """A request: `call` is the name under which it is scripted, `value` its JSON or form."""

    call: str
    path: str
    headers: dict[str, str]
    value: Any
    size: int
    body: bytes = b""


class StandInReply(Struct, frozen=True):
    """What is sent back; a body other than text is sent as JSON."""

    status: int = 200
    body: Any = ""
    headers: dict[str, str] = field(default_factory=dict)


class HttpStandIn:
    """The server. `script` what comes next for a call: `accept`, `ratelimited:<seconds>`, `drop` (take it, then cut the
    connection), `refuse` (cut the connection before anything is taken), `hold` (take it, never answer), `stall` (take nothing,
    never answer), `status:500`, `page:403` (a proxy's page instead), `redirect:<address>`, `huge` (a body without end), `drip`
    (a byte now and then), or a word that the service itself knows."""

    def __init__(self, port: int = 0) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._scripts: defaultdict[str, list[str]] = defaultdict(list)
        self._lock = threading.Lock()
        self._over = threading.Event()
        handler = type("Bound", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Its root, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def script(self, call: str, *behaviours: str) -> None:
        """Say how the next calls of `call` go; after these, all are accepted."""
        self._scripts[call].extend(behaviours)

    def unscript(self) -> None:
        """Forget what was said of calls that have not come."""
        with self._lock:
            self._scripts.clear()

    def count(self, call: str) -> int:
        """Return how often `call` was called."""
        return sum(1 for called, _ in self.calls if called == call)

    def call_of(self, path: str) -> str:
        """Return the name of the call at `path`: its first part."""
        return path.split("/")[1]

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Do what a request asks and return the answer; `behaviour` is `accept`, `drop`, `hold` or a word of the service."""
        raise NotImplementedError

    def keep_waiting(self) -> None:
        """Return when the stand-in ends: what a call meets that is never answered."""
        self._over.wait()

    def is_over(self, within_s: float) -> bool:
        """Return whether the stand-in ends within so long."""
        return self._over.wait(within_s)

    def behaviour(self, request: TakenRequest) -> str:
        """Note a call and return what it is to meet."""
        with self._lock:
            self.calls.append((request.call, request.value))
            script = self._scripts[request.call]
            return script.pop(0) if script else "accept"

    def answer_of(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Take a request as one of several at a time."""
        with self._lock:
            return self.take(request, behaviour)


class _Handler(BaseHTTPRequestHandler):
    service: HttpStandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_json = "json" in self.headers.get("Content-Type", "")
        query = dict(parse_qsl(urlsplit(self.path).query))
        form = query | dict(parse_qsl(body.decode("utf-8", "replace")))
        self._meet(json.loads(body or b"{}") if is_json else form, body)

    def do_GET(self) -> None:
        self._meet(dict(parse_qsl(urlsplit(self.path).query)), b"")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _meet(self, value: Any, body: bytes) -> None:
        path = urlsplit(self.path).path
        request = TakenRequest(self.service.call_of(path), path, dict(self.headers.items()), value, len(body), body)
        behaviour = self.service.behaviour(request)
        kind, _, detail = behaviour.partition(":")
        if kind in ("refuse", "stall"):
            self._leave(kind == "stall")
        elif kind in ("huge", "drip"):
            self._go_on(kind == "drip")
        elif kind in ("page", "redirect"):
            headers = {"Content-Type": "text/html", **({"Location": detail} if kind == "redirect" else {})}
            self._send(302 if kind == "redirect" else int(detail), b"" if kind == "redirect" else PAGE, headers)
        elif kind == "ratelimited":
            self._reply(StandInReply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": detail}))
        elif kind == "status":
            self._reply(StandInReply(int(detail), "<html>no</html>"))
        else:
            reply = self.service.answer_of(request, behaviour)
            if kind in ("drop", "hold"):
                self._leave(kind == "hold")
            else:
                self._reply(reply)

    def _leave(self, waiting: bool) -> None:
        """Give no answer: let the caller wait for it, or cut the connection."""
        self.close_connection = True
        if waiting:
            self.service.keep_waiting()

    def _go_on(self, slowly: bool) -> None:
        """Answer without end: as much as the caller takes, or a byte now and then."""
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while not self.service.is_over(0.05 if slowly else 0):
                self.wfile.write(b" " if slowly else b" " * (1 << 20))
        except OSError:
            pass  # the caller has hung up

    def _reply(self, reply: StandInReply) -> None:
        is_text = isinstance(reply.body, str)
        kind = "text/plain" if is_text else "application/json"
        self._send(
            reply.status, (reply.body if is_text else json.dumps(reply.body)).encode(), {"Content-Type": kind, **reply.headers}
        )

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
