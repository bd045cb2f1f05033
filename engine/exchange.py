"""One HTTP exchange with a receiver or a server that is asked: no redirect is followed; the answer is bounded in size and time.

A redirect would send a token, or text from logs, to another host. The timeout of a socket starts again with every byte, so a
server that sends a byte now and then could block a delivery for ever: the connection is cut at a deadline.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from msgspec import Struct

from engine.model.visible import visible

SILENT_S = 15.0  # timeout without a byte
LONGEST_S = 45.0  # from the first byte sent to the last one read
MOST_BYTES = 16 << 20  # of a body: two hundred messages of Slack with their blocks
MOST_QUOTED = 120  # characters of an answer that a sentence quotes

_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class HttpAnswer(Struct, frozen=True):
    """An HTTP answer: the names of `headers` are in lower case; `body` is cut at MOST_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_redirect(self) -> bool:
        """Whether the status is a redirect (3xx)."""
        return 300 <= self.status < 400

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def quoted(self) -> str:
        """Return the beginning of the body without markup, on one line that is safe to display; empty when it has no text."""
        words = " ".join(_TAG.sub(" ", self.text[:20_000]).split())
        return visible(words if len(words) <= MOST_QUOTED else f"{words[: MOST_QUOTED - 1]}…")

    def redirection(self) -> str:
        """Return the host that a redirect leads to; the full address may hold secrets."""
        host = urlsplit(self.headers.get("location", "")).hostname
        return visible(host[:MOST_QUOTED]) if host else "another address"


def exchange(
    request: Request, silent_s: float = SILENT_S, longest_s: float = LONGEST_S, *, trusted: SSLContext | None = None
) -> HttpAnswer:
    """Send `request` and return the answer, whatever its status.

    Args:
        trusted: the authorities that may sign the server's certificate; None: those of the system.

    Raises OSError (TimeoutError at the deadline) or HTTPException when there is no complete answer.
    """
    deadline = _Deadline(longest_s)
    opener = build_opener(_NoRedirects, _Http(deadline), _Https(deadline, trusted))
    try:
        with deadline, _opened(opener, request, silent_s) as response:
            body = response.read(MOST_BYTES)
            headers = {name.lower(): value for name, value in response.headers.items()}
            answer = HttpAnswer(response.status, headers, body)
    except (OSError, HTTPException, ValueError):
        if deadline.has_passed:
            raise TimeoutError(f"no whole answer within {longest_s:g} s") from None
        raise
    if deadline.has_passed:
        raise TimeoutError(f"no whole answer within {longest_s:g} s")
    return answer


def reached(url: str, within_s: float = 5.0) -> HttpAnswer:
    """Return the answer of the server at `url` to a HEAD request, which changes nothing there; any status shows that it is
    reached. Raises as `exchange` does."""
    return exchange(Request(url, headers={"User-Agent": "tocsin"}, method="HEAD"), within_s, within_s)  # noqa: S310


def _opened(opener: Any, request: Request, silent_s: float) -> Any:
    try:
        return opener.open(request, timeout=silent_s)
    except HTTPError as error:
        return error


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class _Deadline:
    """A context that shuts down the connections made inside it when the deadline passes."""

    def __init__(self, longest_s: float) -> None:
        self.has_passed = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(longest_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for connection in self._sockets:
                connection.close()
            self._sockets.clear()

    def connect(self, *args: Any, **options: Any) -> socket.socket:
        connection = socket.create_connection(*args, **options)
        with self._lock:
            self._sockets.append(connection.dup())  # TLS detaches the socket itself
            if self.has_passed:
                _cut(connection)
        return connection

    def _end(self) -> None:
        with self._lock:
            self.has_passed = True
            for connection in self._sockets:
                _cut(connection)


def _cut(open_socket: socket.socket) -> None:
    with suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)


class _Http(HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection, self._deadline), req)


class _Https(HTTPSHandler):
    def __init__(self, deadline: _Deadline, trusted: SSLContext | None) -> None:
        super().__init__()
        self._deadline, self._options = deadline, {} if trusted is None else {"context": trusted}

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPSConnection, self._deadline), req, **self._options)


def _connection(kind: type[HTTPConnection], deadline: _Deadline, *args: Any, **options: Any) -> HTTPConnection:
    connection = kind(*args, **options)
    connection._create_connection = deadline.connect  # type: ignore[attr-defined]  # http.client's hook for opening sockets
    return connection
