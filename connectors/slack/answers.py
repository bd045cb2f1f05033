"""Turn Slack's answers and failed connections into receipts."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError

from engine.exchange import HttpAnswer
from engine.model.notifications import DeliveryState, Receipt

# Errors of Slack's own, or temporary ones (docs.slack.dev, "Errors" of chat.postMessage); all others are errors of the sender
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
GONE = frozenset(("message_not_found", "cant_update_message", "edit_window_closed"))  # the message cannot be edited any more
# the message was refused for the form of its blocks, and not posted: Slack differs between workspaces in what it takes
REFUSED_BLOCKS = frozenset(("invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long"))

_NEXT = {
    "invalid_auth": "check the token of the receiver",
    "not_authed": "check the token of the receiver",
    "token_revoked": "the token was revoked; make a new one",
    "missing_scope": "the app needs chat:write",
    "channel_not_found": "check the channel's name, and invite the app to it when it is private",
    "not_in_channel": "invite the app to the channel",
    "is_archived": "the channel is archived",
}


_WORD = re.compile(r"[a-z][a-z0-9_]{1,79}")


class NotSlack(Exception):
    """An answer that does not follow Slack's API, as from a proxy, a gateway or a login page. `unsure`: Slack may have received
    the request all the same."""

    def __init__(self, why: str, unsure: bool) -> None:
        super().__init__(why)
        self.unsure = unsure


def check_answer(answer: HttpAnswer) -> None:
    """Raise NotSlack unless the answer is Slack's: status 429 or 5xx, or a JSON object with `ok` and, if false, `error`."""
    if answer.is_redirect:
        raise NotSlack(_redirect_message(answer), unsure=False)
    if answer.status == 429 or answer.status >= 500:
        return
    value = _json(answer)
    if isinstance(value.get("ok"), bool) and (value["ok"] or _WORD.fullmatch(str(value.get("error", "")))):
        return
    raise NotSlack(_foreign_answer(answer), unsure=answer.status < 300)


def refused_blocks(error: str) -> str:
    """Return the remark on a message that was delivered without its blocks, which Slack refused with the word `error`."""
    return f"Slack refused its blocks ({error}), so it was sent as text"


def from_hook(answer: HttpAnswer) -> Receipt:
    """Return the receipt for the answer of an incoming webhook: `ok`, or one word with an underscore for the error."""
    word, value = answer.text.strip(), _json(answer)
    if answer.status < 300 and value.get("ok") is False:  # a gateway that answers as the API does
        error = str(value.get("error", ""))
        if _WORD.fullmatch(error):
            return from_answer(answer.status, error, answer.headers)
        return Receipt(DeliveryState.RETRY_LATER, _foreign_answer(answer))
    is_page = word.startswith("<") or (len(word) > 2 and "html" in answer.headers.get("content-type", ""))
    if 200 <= answer.status < 300 and (word == "ok" or not is_page):
        return Receipt(DeliveryState.DELIVERED)
    if answer.is_redirect:
        return Receipt(DeliveryState.RETRY_LATER, _redirect_message(answer))
    if answer.status == 429 or answer.status >= 500:
        return from_answer(answer.status, word if _WORD.fullmatch(word) else "", answer.headers)
    if answer.status >= 400 and "_" in word and _WORD.fullmatch(word):
        return from_answer(answer.status, word, answer.headers)
    return Receipt(DeliveryState.RETRY_LATER, _foreign_answer(answer), unsure=answer.status < 300)


def from_answer(status: int, error: str, headers: Mapping[str, Any]) -> Receipt:
    """Return the receipt for an error of Slack: HTTP `status`, the `error` word and the headers of the answer."""
    if status == 429 or error in ("ratelimited", "rate_limited"):
        return Receipt(DeliveryState.RETRY_LATER, "Slack asks to wait", after_s=_retry_after_s(headers))
    if status >= 500 or error in _LATER:
        return Receipt(DeliveryState.RETRY_LATER, _sentence(status, error), unsure=status >= 500 or error in _UNSURE)
    return Receipt(DeliveryState.REJECTED, _sentence(status, error))


def from_foreign_answer(error: NotSlack) -> Receipt:
    """Return the receipt for an answer that is not Slack's: it is always tried again."""
    return Receipt(DeliveryState.RETRY_LATER, str(error), unsure=error.unsure)


def from_failure(error: Exception) -> Receipt:
    """Return the receipt for a failed connection: unsure, unless nothing can have been sent."""
    cause = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    nothing_sent = isinstance(cause, ConnectionRefusedError | socket.gaierror)
    how = "does not answer in time" if isinstance(cause, TimeoutError) else f"cannot be reached ({type(cause).__name__})"
    return Receipt(DeliveryState.RETRY_LATER, f"Slack {how}", unsure=not nothing_sent)


def _redirect_message(answer: HttpAnswer) -> str:
    where = answer.redirection()
    return (
        f"instead of Slack's answer comes a redirect to {where} (status {answer.status}); it is not followed, as that would"
        " send the token there; check base_url or webhook_url, and the proxy"
    )


def _foreign_answer(answer: HttpAnswer) -> str:
    quoted = answer.quoted()
    quotation = f": {quoted}" if quoted else ""
    return f"an answer that is not Slack's, with status {answer.status}{quotation}; check the proxy; it is tried again"


def _json(answer: HttpAnswer) -> Mapping[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sentence(status: int, error: str) -> str:
    sentence = f"Slack says {error}" if error else f"Slack answers with status {status}"
    return f"{sentence}; {_NEXT[error]}" if error in _NEXT else sentence


def _retry_after_s(headers: Mapping[str, Any]) -> float:
    values = [value for name, value in headers.items() if name.lower() == "retry-after"]
    first = values[0][0] if values and isinstance(values[0], list) else values[0] if values else ""
    return float(first) if re.fullmatch(r"[0-9]{1,9}", str(first)) else 30.0
