"""The picture of an incident in the thread of its message: once, and once more when it is resolved.

It is an extra: a failure never fails the notification, nor repeats its messages. Uploads bear no metadata, so after a kill
between the upload and its receipt the thread may have the picture once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from http.client import HTTPException
from urllib.request import Request

from msgspec import Struct, ValidationError, convert
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from connectors.slack.answers import NotSlack, from_answer
from connectors.slack.limits import cut
from engine.exchange import exchange
from engine.model.addresses import may_carry_secrets
from engine.model.incidents import Incident
from engine.model.notifications import DIGEST_HEADINGS, DeliveryState, Notification, Reason, Receipt
from engine.model.visible import visible

Painter = Callable[[Incident], bytes | None]  # returns a PNG; None when there is no picture of an incident
MARK = "picture"  # of a message: the last state of which the thread has a picture
MOST_TITLE = 200
_GOING_ON = frozenset(("open", "acknowledged"))
_FAILURES = (SlackClientError, NotSlack, OSError, HTTPException, ValueError)


class Upload(Enum):
    """What became of a picture. SETTLED: it is there, may be there, or Slack never takes it."""

    SETTLED = "settled"
    FAILED = "failed"
    FORBIDDEN = "forbidden"  # the app has no scope for it, until someone grants it


class _Ticket(Struct, frozen=True):
    upload_url: str
    file_id: str


def due_picture(notification: Notification, marks: Mapping[str, str]) -> str:
    """Return the state that a picture is due of: `open` or `resolved`; empty for none."""
    incident = notification.incident
    if incident.rule in DIGEST_HEADINGS or notification.reason is Reason.TEST:
        return ""
    state = "open" if incident.status in _GOING_ON else "resolved" if incident.status == "resolved" else ""
    return "" if marks.get(MARK) in ("resolved", state) else state


def uploaded(client: WebClient, channel: str, thread_ts: str, incident: Incident, png: bytes) -> Upload:
    """Upload `png` into a thread; return what became of it."""
    title = cut(visible(incident.title), MOST_TITLE)
    try:
        answer = client.files_getUploadURLExternal(filename=f"{incident.id}.png", length=len(png), alt_txt=title)
        ticket = convert(answer.data, _Ticket)
        _send(ticket.upload_url, png)
    except SlackApiError as error:
        return _refused(error)
    except (*_FAILURES, ValidationError):
        return Upload.FAILED
    try:
        file: dict[str, str | None] = {"id": ticket.file_id, "title": title}
        client.files_completeUploadExternal(files=[file], channel_id=channel, thread_ts=thread_ts)
    except SlackApiError as error:
        return Upload.SETTLED if _receipt(error).unsure else _refused(error)
    except _FAILURES:
        return Upload.SETTLED  # rather none than two
    return Upload.SETTLED


def _refused(error: SlackApiError) -> Upload:
    if error.response.get("error") == "missing_scope":
        return Upload.FORBIDDEN
    return Upload.SETTLED if _receipt(error).state is DeliveryState.REJECTED else Upload.FAILED


def _receipt(error: SlackApiError) -> Receipt:
    answer = error.response
    return from_answer(answer.status_code, str(answer.get("error") or ""), answer.headers)


def _send(url: str, png: bytes) -> None:
    """Send the bytes of a file to the address that Slack names for them. Raises ValueError, or the errors of `exchange`."""
    if not may_carry_secrets(url):
        raise ValueError("the address for the upload is not encrypted")
    answer = exchange(Request(url, png, {"Content-Type": "image/png", "User-Agent": "tocsin"}, method="POST"))  # noqa: S310
    if answer.status != 200:
        raise ValueError(f"the upload is answered with status {answer.status}")
