"""The forms of the pages: read from the body of a request within bounds, and as an act."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from engine.model.acts import SILENCE_SPANS, USUAL_SPAN, Act, ActKind, SilenceScope

MOST_BYTES = 64 * 1024
MOST_FIELDS = 20
VIA = "page"


async def fields_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a posted form; of a field that occurs twice the last. Raises HTTPException beyond the bounds."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise HTTPException(415, "This address takes the form of a page only.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"The form is larger than {MOST_BYTES // 1024} KiB.")
    try:
        return dict(parse_qsl(bytes(body).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(400, "This is not the form of a page.") from None


def act_of(fields: Mapping[str, str], incident: str, user: str, now: datetime) -> Act:
    """Return the act that a form on the page of an incident asks for. Raises HTTPException when it names no act.

    Its key follows from the key of the form and all that it says, so a form that is sent again is the same act, and one that
    was filled in anew is another.
    """
    try:
        kind, scope = ActKind(fields.get("kind", "")), SilenceScope(fields.get("of") or SilenceScope.INCIDENT.value)
        span = SILENCE_SPANS[fields.get("for") or USUAL_SPAN]
        key = fields["key"]
    except (ValueError, KeyError):
        raise HTTPException(400, "This is not the form of a page.") from None
    text, assignee = fields.get("text", "").replace("\r\n", "\n").strip(), fields.get("assignee", "").strip()
    silence = fields.get("silence", "") if kind is ActKind.UNSILENCE else ""
    content = "\0".join((user, key, incident, kind.value, scope.value, str(span), text, assignee, silence))
    return Act(
        key=f"page {hashlib.sha256(content.encode()).hexdigest()}",
        incident=incident,
        kind=kind,
        by=user,
        via=VIA,
        at=now,
        text=text,
        assignee=assignee,
        until=now + span if kind is ActKind.SILENCE else None,
        scope=scope,
        silence=silence,
    )


def new_key() -> str:
    """Return the key of the forms of a page, which is another one each time it is loaded."""
    return secrets.token_urlsafe(12)


def local_address(text: str) -> str:
    """Return an address of ours to go to after signing in: `text` if it is one, else that of the list."""
    is_path = text.startswith("/") and not text.startswith("//")
    is_plain = text.isprintable() and "\\" not in text  # browsers take a backslash for a slash, and drop line ends
    return text if is_path and is_plain else "/"
