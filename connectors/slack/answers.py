"""What Slack's answers and a broken connection mean for a delivery."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError

from engine.model.notifications import Receipt, State

# Slack is at fault, or it is a matter of time (docs.slack.dev, "Errors" of chat.postMessage); all else is ours to mend
_LATER = frozenset(
    (
        "ratelimited",
        "rate_limited",
        "message_limit_exceeded",
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
    )
)
_UNSURE = frozenset(("internal_error", "fatal_error", "request_timeout"))
GONE = frozenset(("message_not_found", "cant_update_message", "edit_window_closed"))  # a message that cannot be edited

_NEXT = {
    "invalid_auth": "check the token of the receiver",
    "not_authed": "check the token of the receiver",
    "token_revoked": "the token was revoked; make a new one",
    "missing_scope": "the app needs chat:write",
    "channel_not_found": "check the channel's name, and invite the app to it when it is private",
    "not_in_channel": "invite the app to the channel",
    "is_archived": "the channel is archived",
}


def from_answer(status: int, error: str, headers: Mapping[str, Any]) -> Receipt:
    """Return the receipt for an answer that is no success: HTTP `status`, Slack's `error` word, the answer's headers."""
    if status == 429 or error in ("ratelimited", "rate_limited"):
        return Receipt(State.RETRY_LATER, "Slack asks to wait", after_s=_retry_after_s(headers))
    if status >= 500 or error in _LATER:
        return Receipt(State.RETRY_LATER, _sentence(status, error), unsure=status >= 500 or error in _UNSURE)
    return Receipt(State.REJECTED, _sentence(status, error))


def from_failure(error: Exception) -> Receipt:
    """Return the receipt for a connection that failed: unsure, unless nothing can have been sent."""
    cause = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    nothing_sent = isinstance(cause, ConnectionRefusedError | socket.gaierror)
    return Receipt(State.RETRY_LATER, f"Slack cannot be reached ({type(cause).__name__})", unsure=not nothing_sent)


def _sentence(status: int, error: str) -> str:
    said = f"Slack says {error}" if error else f"Slack answers with status {status}"
    return f"{said}; {_NEXT[error]}" if error in _NEXT else said


def _retry_after_s(headers: Mapping[str, Any]) -> float:
    values = [value for name, value in headers.items() if name.lower() == "retry-after"]
    first = values[0][0] if values and isinstance(values[0], list) else values[0] if values else ""
    return float(first) if str(first).isdigit() else 30.0
