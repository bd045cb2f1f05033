"""A connection to the pages: who is slow or idle does not keep others out, and every answer bears the security headers.

uvicorn waits for ever for the rest of a request and for a reader that does not read, and answers what is no HTTP by itself.
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

MOST_CONNECTIONS = 100
REQUEST_WITHIN_S = 10.0  # from its first byte, or from the connection's beginning
ANSWER_WITHIN_S = 60.0  # until it is read to its end
KEEP_ALIVE_S = 5
REPEATED_AFTER_S = 60.0

_TOO_MANY = "there are too many connections to the pages; the one that was idle or slow for longest was closed"
_SAID = logging.getLogger("uvicorn.error")


class Patience(Struct, frozen=True):
    """How many connections there may be at once, and how long is waited for a request and for the reader of an answer."""

    connections: int = MOST_CONNECTIONS
    request_s: float = REQUEST_WITHIN_S
    answer_s: float = ANSWER_WITHIN_S


PATIENCE = Patience()


class Connection(H11Protocol):
    """One of at most `patience.connections`: a new one takes the place of the one that has been idle, or slow, for longest."""

    patience = PATIENCE

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since = time.monotonic()  # of what it is at now: waiting for a request, or answering one
        self._request_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; the connection that has waited longest goes when there are too many."""
        super().connection_made(transport)
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        if len(others) >= self.patience.connections:
            min(others, key=Connection._claim).give_up(
                "there are too many connections to the pages; the one that was idle or slow for longest was closed"
            )
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._cancel_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Note that an answer was given, if not yet read, to its end."""
        self._since = time.monotonic()
        super().on_response_complete()
        self._watch()

    def give_up(self, why: str) -> None:
        """Close at once, whatever is unsent."""
        _SAID.warning(why)
        self._cancel_timers()
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing came after an answer."""
        if not self.transport.get_write_buffer_size():
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; where another answer has begun, nothing can be said any more."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True
        headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close", "Cache-Control": "no-store", **HEADERS}
        body = b"This is no request that these pages understand.\n"
        response = h11.Response(
            status_code=400, headers=[*headers.items(), ("Content-Length", str(len(body)))], reason=b"Bad Request"
        )
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _claim(self) -> tuple[bool, float]:
        """Return by what the first to go is chosen: idle ones, then those that read slowly, each since when."""
        return self._is_answering(), self._since

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Let the timers run that fit what is waited for."""
        state = self.conn.their_state
        begun = self.cycle is None or bool(self.conn.trailing_data[0])
        if state is h11.SEND_BODY or (state is h11.IDLE and begun):
            if self._request_timer is None:
                self._since = time.monotonic()
                late = "a connection to the pages that did not send its request in time was closed"
                self._request_timer = self.loop.call_later(self.patience.request_s, self.give_up, late)
        elif self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        if self._is_answering() or self.transport.get_write_buffer_size():
            if self._answer_timer is None:
                late = "a connection to the pages that did not read its answer in time was closed"
                self._answer_timer = self.loop.call_later(self.patience.answer_s, self.give_up, late)
        elif self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _cancel_timers(self) -> None:
        for timer in (self._request_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        self._request_timer = self._answer_timer = None


class OncePerMinute(logging.Filter):
    """Lets a message of one kind through once in REPEATED_AFTER_S, with how many there were since: nobody fills a log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether `record` is told; one that is says how often its like was not."""
        kind = str(record.msg), str(record.exc_info and record.exc_info[0])
        now = time.monotonic()
        last, untold = self._last.get(kind, (-REPEATED_AFTER_S, 0))
        if now - last < REPEATED_AFTER_S:
            self._last[kind] = last, untold + 1
            return False
        self._last[kind] = now, 0
        if len(self._last) > 1000:
            self._last = {kind: (now, 0)}
        if untold:
            record.msg, record.args = f"{record.getMessage()} (and {untold} more like it before)", ()
        return True
