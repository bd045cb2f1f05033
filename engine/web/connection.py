"""Connections to the pages: slow and idle clients do not keep others out, and every response has the security headers.

uvicorn waits without limit for the rest of a request and for a client that does not read, and its own response to a malformed
request lacks the headers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import h11
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.web.guard import HEADERS

MAX_CONNECTIONS = 100
REQUEST_WITHIN_S = 10.0  # from its first byte, or from the start of the connection
ANSWER_WITHIN_S = 60.0  # until the client has read it
KEEP_ALIVE_S = 5
REPEAT_EVERY_S = 60.0

_TOO_MANY = "there are too many connections to the pages; the one that was idle or slow for longest was closed"
_LOG = logging.getLogger("uvicorn.error")


class ConnectionLimits(Struct, frozen=True):
    """The limits on connections: how many at once, how long a request may take to arrive, and a response to be read."""

    connections: int = MAX_CONNECTIONS
    request_s: float = REQUEST_WITHIN_S
    answer_s: float = ANSWER_WITHIN_S


DEFAULT_LIMITS = ConnectionLimits()


class Connection(H11Protocol):
    """One of at most `limits.connections`: a new connection replaces the one that has been idle or slow for longest."""

    limits = DEFAULT_LIMITS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since = time.monotonic()  # when it began to wait for a request, or to answer one
        self._request_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start; when there are too many connections, close the one that has been idle or slow for longest."""
        super().connection_made(transport)
        others = [other for other in self.connections if isinstance(other, Connection) and other is not self]
        if len(others) >= self.limits.connections:
            min(others, key=Connection._precedence).give_up(_TOO_MANY)
        self._set_timers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._cancel_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        self._set_timers()

    def on_response_complete(self) -> None:
        """Note that a response was written to its end, though the client may not have read it yet."""
        self._since = time.monotonic()
        super().on_response_complete()
        self._set_timers()

    def give_up(self, why: str) -> None:
        """Close the connection at once, without sending the rest, and log `why`."""
        _LOG.warning(why)
        self._cancel_timers()
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle since its last response, unless the client is still reading that."""
        if not self.transport.get_write_buffer_size():
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Respond to a malformed request; once another response has begun, only close the connection."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True
        headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close", "Cache-Control": "no-store", **HEADERS}
        body = b"This is not a valid HTTP request.\n"
        response = h11.Response(
            status_code=400, headers=[*headers.items(), ("Content-Length", str(len(body)))], reason=b"Bad Request"
        )
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _precedence(self) -> tuple[bool, float]:
        """Return the sort key by which connections are closed first: idle ones, then slow ones, longest first."""
        return self._is_answering(), self._since

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _set_timers(self) -> None:
        """Start the timers of what the connection waits for, and stop the others."""
        state = self.conn.their_state
        request_pending = self.cycle is None or bool(self.conn.trailing_data[0])
        if state is h11.SEND_BODY or (state is h11.IDLE and request_pending):
            if self._request_timer is None:
                self._since = time.monotonic()
                why = "a connection to the pages that did not send its request in time was closed"
                self._request_timer = self.loop.call_later(self.limits.request_s, self.give_up, why)
        elif self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        if self._is_answering() or self.transport.get_write_buffer_size():
            if self._answer_timer is None:
                why = "a connection to the pages that did not read its answer in time was closed"
                self._answer_timer = self.loop.call_later(self.limits.answer_s, self.give_up, why)
        elif self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _cancel_timers(self) -> None:
        for timer in (self._request_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        self._request_timer = self._answer_timer = None


class OncePerMinute(logging.Filter):
    """Passes one message of a kind per REPEAT_EVERY_S, with the number of those dropped before: no client can fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether `record` is logged; append to its message how many of its kind were dropped before."""
        kind = str(record.msg), str(record.exc_info and record.exc_info[0])
        now = time.monotonic()
        last, dropped = self._last.get(kind, (-REPEAT_EVERY_S, 0))
        if now - last < REPEAT_EVERY_S:
            self._last[kind] = last, dropped + 1
            return False
        self._last[kind] = now, 0
        if len(self._last) > 1000:
            self._last = {kind: (now, 0)}
        if dropped:
            record.msg, record.args = f"{record.getMessage()} (and {dropped} more like it before)", ()
        return True
