"""The heartbeat: a request to a dead man's switch, sent only while every part of the run works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import Request

from engine.exchange import exchange
from engine.ports import Say


def beat(url: str, problems: Callable[[], Sequence[str]], every_s: float, stop: threading.Event, say: Say) -> None:
    """Request `url` every `every_s` seconds while there are no `problems`, until `stop` is set.

    Says once why a heartbeat is withheld or failed, and once when heartbeats go on. Never says `url`, which may be secret.
    """
    last_trouble = ""
    while True:
        trouble = "; ".join(problems())
        trouble = f"the heartbeat is withheld: {trouble}" if trouble else _send(url)
        if trouble != last_trouble:
            say(trouble or "heartbeats go on")
        last_trouble = trouble
        if stop.wait(every_s):
            return


def _send(url: str) -> str:
    """Send one heartbeat; return what went wrong, empty for nothing."""
    try:
        answer = exchange(Request(url))  # noqa: S310  (the scheme is checked with the configuration)
    except (HTTPException, URLError, OSError, ValueError) as error:
        return f"the heartbeat could not be sent: {type(error).__name__}"
    return "" if answer.status < 300 else f"the heartbeat was answered with {answer.status}"
