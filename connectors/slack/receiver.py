"""A Slack channel as a receiver, with a bot token: post a message once, then edit it by its stored channel and ts.

Slack documents no idempotency key. So every message carries metadata, nothing is retried inside a call, and after an attempt
with unknown outcome the channel is searched for that metadata before anything is posted again. One case remains: when the app
may not read the channel's history, such a message may be posted twice. Every message also has a `client_msg_id`, by which
Slack may recognise it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from http.client import HTTPException
from typing import Annotated, Any, ClassVar, Protocol
from uuid import UUID, uuid5

from msgspec import Meta, Struct, ValidationError, convert, field, msgpack
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from connectors.slack.answers import (
    GONE,
    REFUSED_BLOCKS,
    NotSlack,
    from_answer,
    from_failure,
    from_foreign_answer,
    refused_blocks,
)
from connectors.slack.client import StrictClient
from connectors.slack.inspecting import inspected
from connectors.slack.message import NEW_FIX, Message, change, fix_mark, is_loud, parent
from connectors.slack.picture import MARK, Painter, Upload, due_picture, uploaded
from connectors.slack.scopes import CONNECT, missing_rights
from connectors.slack.table import sample_table
from connectors.slack.thread import details
from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.inspections import Inspection
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt

API = "https://slack.com/api/"
EVENT_TYPE = "tocsin_incident"
MOST_UNNAMED = 2  # posts of one revision while no answer has the ts of the message
SKEW_S = 300  # the largest difference between Slack's clock and ours
PAGES = 10  # pages of a history to search
_NAMESPACE = UUID("6f2f0c3e-3a55-4c0b-9d0a-5d6d1f0e8a11")  # of the ids that messages are posted with

_UNREADABLE = frozenset(("missing_scope", "not_in_channel", "channel_not_found", "not_allowed_token_type", "no_permission"))


_UNNAMED = "Slack's answer says ok but does not name the message"


class _Thread(Struct, frozen=True):
    thread_ts: str = ""


class _MessagePlace(Struct, frozen=True):
    channel: str
    ts: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]
    message: _Thread | None = None


class _Channel(Struct, frozen=True):
    id: str
    name: str = ""


class _PostedMessage(Struct, frozen=True):
    ts: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]
    metadata: dict[str, Any] = {}


class _Page(Struct, frozen=True):
    channels: list[_Channel] = []
    messages: list[_PostedMessage] = []
    response_metadata: dict[str, Any] | None = None


class _SlackAnswer(Protocol):
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, Any]: ...
    def get(self, key: str, default: Any = None) -> Any: ...


class SlackReceiver(Struct, frozen=True):
    """A channel (`#name` in any script, or an id) of the workspace of `client`'s token. With `app_token`
    people act on incidents there, as a SlackSocket listens. With `paint` the thread of an incident has its picture.
    `forbidden` are the marks of what Slack has refused this process for want of a scope: it is not tried again."""

    channel: str
    client: WebClient
    app_token: str = ""
    paint: Painter | None = None
    forbidden: set[str] = field(default_factory=set)
    edits: ClassVar[bool] = True  # the message of an incident is edited
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = True  # people read it

    def __repr__(self) -> str:
        return f"SlackReceiver({self.channel})"  # without the tokens

    @property
    def rate_limit_key(self) -> str:
        """The channel: Slack allows about one message per second and channel."""
        return f"slack:{self.client.base_url}:{self.channel}"

    def missing_rights(self) -> list[str]:
        """Return a sentence for each thing that the app may not do, as far as Slack says so; none when it does not answer."""
        try:
            headers = self.client.auth_test().headers
        except (SlackClientError, NotSlack, OSError, HTTPException, ValueError):
            return []
        granted = next((str(value) for name, value in headers.items() if name.lower() == "x-oauth-scopes"), None)
        scopes = None if granted is None else {scope.strip() for scope in granted.split(",")}
        needs = {"has_buttons": bool(self.app_token), "has_pictures": self.paint is not None}
        missing = [] if scopes is None else list(missing_rights(scopes, self.channel, **needs))
        return [*missing, *self._refusal_of_app_token(), *self._refusal_of_tables()]

    def _refusal_of_app_token(self) -> list[str]:
        """Return a sentence when Slack refuses the app's token; none when it cannot be asked."""
        try:
            if self.app_token:
                self.client.apps_connections_open(app_token=self.app_token)
        except SlackApiError as error:
            word = _field(error.response, "error")
            return [f"Slack refuses app_token ({word}): buttons and /tocsin do nothing; it needs the scope {CONNECT}"]
        except (SlackClientError, NotSlack, OSError, HTTPException, ValueError):
            pass
        return []

    def inspect(self) -> list[Inspection]:
        """Try token, scopes and channel without sending anything."""
        return inspected(self.client, self.channel)

    def _refusal_of_tables(self) -> list[str]:
        """Return a sentence when the workspace takes no tables, as blocks.validate says; none when it cannot be asked."""
        try:
            self.client.api_call("blocks.validate", json={"blocks": [sample_table()]})
        except SlackApiError as error:
            word = _field(error.response, "error")
            return [f"Slack refuses tables ({word}): a storm is sent as text"] if word in REFUSED_BLOCKS else []
        except (SlackClientError, NotSlack, OSError, HTTPException, ValueError):
            pass
        return []

    def deliver(self, notification: Notification) -> Receipt:
        """Post or edit the incident's message and the details in its thread, then post what has changed to the thread.

        A failure half way returns the marks so far, so that the next attempt continues there.
        """
        session = _DeliverySession(self, notification)
        try:
            session.deliver()
            receipt = Receipt(DeliveryState.DELIVERED, session.refusal)
        except SlackApiError as error:
            answer: _SlackAnswer = error.response
            receipt = from_answer(answer.status_code, str(_field(answer, "error")), answer.headers)
        except _ParentGone:
            receipt = Receipt(DeliveryState.RETRY_LATER, "the message was deleted again while it was being sent")
        except NotSlack as error:
            receipt = Receipt(DeliveryState.REJECTED, str(error)) if session.is_given_up else from_foreign_answer(error)
        except (OSError, HTTPException, SlackClientError, ValueError) as error:
            receipt = from_failure(error)
        return Receipt(receipt.state, receipt.why, receipt.after_s, receipt.unsure, session.marks, session.sent)


def open_receiver(
    channel: str, token: str, base_url: str = API, *, app_token: str = "", paint: Painter | None = None
) -> SlackReceiver:
    """Return the receiver of `channel`. Raises UsageError when the token would be sent unencrypted to `base_url`."""
    if not may_carry_secrets(base_url):
        raise UsageError(f"{base_url}: a token is sent to https addresses and to this machine only")
    return SlackReceiver(channel, StrictClient(token=token, base_url=base_url, retry_handlers=[]), app_token, paint)


class _ParentGone(Exception):
    """A reply whose thread was gone, so that Slack posted it as a message of its own, at `ts`."""

    def __init__(self, ts: str) -> None:
        super().__init__(ts)
        self.ts = ts


class _DeliverySession:
    """One delivery: posts and edits; `marks`, `sent` (their number) and `refusal` are current after each.

    The marks: `channel` and `ts` of the message, `generation` (how often it was posted anew), `details` (the ts of its details
    in the thread) and `shown` (their fingerprints), `fix` (the fingerprint of the fix that the channel knows), `reply` (the
    last change in the thread), `picture` (see due_picture), `unnamed` (see _place).
    """

    def __init__(self, receiver: SlackReceiver, notification: Notification) -> None:
        self._client, self._channel, self._notification = receiver.client, receiver.channel, notification
        self._has_buttons, self._paint = bool(receiver.app_token), receiver.paint
        self._forbidden = receiver.forbidden
        self.marks = dict(notification.marks)
        self.sent = 0
        self.is_given_up = False
        self.refusal = ""  # why a message was sent as text

    def deliver(self) -> None:
        self._recover()
        try:
            self._deliver()
        except _ParentGone as gone:  # deleted between the edit and the reply
            with suppress(SlackApiError):
                self._client.chat_delete(channel=self.marks["channel"], ts=gone.ts)
            self._forget()
            self._deliver()

    def _deliver(self) -> None:
        if not ("ts" in self.marks and self._edit_parent()):
            self._forget()
            self._post(self._parent())
        self._put_details()
        self._tell_change()
        self._put_picture()

    def _forget(self) -> None:
        """Drop the marks of a message that is gone, and count the next one as another."""
        if "ts" in self.marks:
            self.marks = {"generation": str(int(self.marks.get("generation", "0")) + 1)}

    def _recover(self) -> None:
        """Set the marks of the message that an unsure attempt may have posted, if the channel has it."""
        since = self._notification.unsure_since
        if since is None or "ts" in self.marks:
            return
        channel = self._channel_id()
        if channel is not None:
            key = {"key": self._notification.incident.id}
            ts = self._search(self._client.conversations_history, {"channel": channel}, key, since)
            if ts is not None:
                self.marks |= {"channel": channel, "ts": ts}

    def _edit_parent(self) -> bool:
        return self._edit(self.marks["ts"], self._parent(), self._metadata())

    def _parent(self) -> Message:
        notification = self._notification
        has_buttons = self._has_buttons and notification.reason is not Reason.TEST
        return parent(
            notification.incident,
            notification.links,
            notification.members,
            has_buttons=has_buttons,
            words=notification.words,
        )

    def _edit(self, ts: str, message: Message, metadata: Mapping[str, Any]) -> bool:
        """Edit a message of the channel; return False when it is deleted or can no longer be edited."""
        try:
            self._accepted(self._client.chat_update, message, channel=self.marks["channel"], ts=ts, metadata=metadata)
        except SlackApiError as error:
            if _field(error.response, "error") not in GONE:
                raise
            return False
        self.sent += 1
        return True

    def _post(self, message: Message) -> None:
        place = self._place(message, "", channel=self._channel, unfurl_links=False, unfurl_media=False)
        self.marks |= {"channel": place.channel, "ts": place.ts}
        if self._notification.unsure_since is not None:  # an earlier post with the same client_msg_id may have been named
            self._edit_parent()

    def _accepted(self, method: Callable[..., Any], message: Message, **arguments: Any) -> Any:
        """Call `method` with `message`, without its blocks where Slack refuses these."""
        try:
            return method(**message.payload(), **arguments)
        except SlackApiError as error:
            word = _field(error.response, "error")
            if word not in REFUSED_BLOCKS:
                raise
            self.refusal = refused_blocks(word)
            return method(**message.plain(), **arguments)

    def _place(self, message: Message, mark: str, **arguments: Any) -> _MessagePlace:
        """Post a message and return its channel and ts; `mark` names a reply.

        Raises NotSlack when the answer is ok without these: the next attempt searches for the message first. A revision is
        posted at most MOST_UNNAMED times like that.
        """
        revision, _, count = self.marks.get("unnamed", "").partition("/")
        times = int(count) if revision == str(self._notification.incident.revision) else 0
        if times >= MOST_UNNAMED:
            self.is_given_up = True
            raise NotSlack(f"{_UNNAMED}, {times} times: it is not posted again until there is something new", unsure=True)
        metadata, id_ = self._metadata(mark), self._client_msg_id(mark)
        answer = self._accepted(self._client.chat_postMessage, message, metadata=metadata, client_msg_id=id_, **arguments)
        self.sent += 1
        try:
            place = convert(answer.data, _MessagePlace)
        except ValidationError:
            self.marks["unnamed"] = f"{self._notification.incident.revision}/{times + 1}"
            raise NotSlack(f"{_UNNAMED}; it is looked for before it is posted again", unsure=True) from None
        self.marks.pop("unnamed", None)
        return place

    def _put_details(self) -> None:
        """Bring the details in the thread up to date: post those that are missing, edit those that have changed."""
        incident = self._notification.incident
        pages = details(incident, self._notification.lines, self._notification.words)
        if incident.status == "merged":
            return
        timestamps, fingerprints = self.marks.get("details", "").split(), self.marks.get("shown", "").split()
        pages += [Message(self._notification.words("No more details"), [])] * (len(timestamps) - len(pages))
        for number, page in enumerate(pages):
            fingerprint = sha256(msgpack.encode(page)).hexdigest()[:12]
            if fingerprints[number : number + 1] == [fingerprint]:
                continue
            mark = f"details/{number + 1}"
            ts = timestamps[number] if number < len(timestamps) else self._posted_ts(mark)
            if ts is None or not self._edit(ts, page, self._metadata(mark)):
                ts = self._reply(page, mark)
            timestamps[number:] = [ts, *timestamps[number + 1 :]]
            fingerprints[number:] = [fingerprint, *fingerprints[number + 1 :]]
            self.marks |= {"details": " ".join(timestamps), "shown": " ".join(fingerprints)}

    def _put_picture(self) -> None:
        """Upload the picture into the thread when one is due. A failure is no failure of the delivery."""
        state, incident = due_picture(self._notification, self.marks), self._notification.incident
        paint = None if MARK in self._forbidden else self._paint
        png = paint(incident) if state and paint is not None else None
        if png is None:
            return
        match uploaded(self._client, self.marks["channel"], self.marks["ts"], incident, png):
            case Upload.SETTLED:
                self.sent += 1
                self.marks[MARK] = state
            case Upload.FORBIDDEN:
                self._forbidden.add(MARK)

    def _tell_change(self) -> None:
        incident, reason = self._notification.incident, self._notification.reason
        earlier_fix, fix = self.marks.get("fix", ""), fix_mark(incident)
        message = change(self._notification, NEW_FIX if earlier_fix and fix and earlier_fix != fix else "")
        mark = f"{reason.value}/{incident.edition}"
        if message is not None and (self.marks.get("reply") != mark or reason is Reason.REPEATED):
            if self._posted_ts(mark) is None:
                self._reply(message, mark, is_loud(reason, earlier_fix, fix))
            self.marks["reply"] = mark
        if fix:
            self.marks["fix"] = fix

    def _reply(self, message: Message, mark: str, loud: bool = False) -> str:
        """Post into the thread and return the ts. Raises _ParentGone when the thread is gone."""
        place = self._place(
            message, mark, channel=self.marks["channel"], thread_ts=self.marks["ts"], reply_broadcast=loud, unfurl_links=False
        )
        if place.message is not None and place.message.thread_ts != self.marks["ts"] and not self._edit_parent():
            raise _ParentGone(place.ts)
        return place.ts

    def _posted_ts(self, mark: str) -> str | None:
        """Return the ts of the reply that an unsure attempt may have posted, if the thread has it."""
        since = self._notification.unsure_since
        if since is None:
            return None
        place = {"channel": self.marks["channel"], "ts": self.marks["ts"]}
        key = {"key": self._notification.incident.id, "reply": mark}
        return self._search(self._client.conversations_replies, place, key, since)

    def _metadata(self, mark: str = "") -> dict[str, Any]:
        payload = {"key": self._notification.incident.id, **({"reply": mark} if mark else {})}
        return {"event_type": EVENT_TYPE, "event_payload": payload}

    def _client_msg_id(self, mark: str) -> str:
        """Return the id of a message: the same when it is posted again after an unknown outcome."""
        generation = self.marks.get("generation", "0")
        return str(uuid5(_NAMESPACE, "/".join((self._notification.incident.id, self._channel, generation, mark))))

    def _channel_id(self) -> str | None:
        """Return the id of the channel, which reading needs (posting takes a name too); None when it is not found."""
        name = self._channel.removeprefix("#")
        if not self._channel.startswith("#"):
            return name
        for kind in ("public_channel", "private_channel"):  # one at a time: the app may be allowed to list only one of them
            for page in self._pages(self._client.conversations_list, {"types": kind}):
                for channel in page.channels:
                    if channel.name == name:
                        return channel.id
        return None

    def _search(
        self, read: Callable[..., Any], place: Mapping[str, str], key: Mapping[str, str], since: datetime
    ) -> str | None:
        """Return the ts of the oldest message with the metadata `key`; None when there is none or it may not be read."""
        query = {**place, "include_all_metadata": True, "oldest": str(since.timestamp() - SKEW_S)}
        timestamps = [
            message.ts
            for page in self._pages(read, query)
            for message in page.messages
            if message.metadata.get("event_payload") == key
        ]
        return min(timestamps, key=float, default=None)

    def _pages(self, read: Callable[..., Any], query: Mapping[str, Any]) -> list[_Page]:
        pages, cursor = list[_Page](), ""
        try:
            for _ in range(PAGES):
                answer = read(**query, limit=200, **({"cursor": cursor} if cursor else {}))
                pages.append(convert(answer.data, _Page))
                cursor = str((pages[-1].response_metadata or {}).get("next_cursor") or "")
                if not cursor:
                    break
        except SlackApiError as error:
            if _field(error.response, "error") not in _UNREADABLE:
                raise
        except ValidationError as error:
            raise NotSlack(f"Slack's answer differs from its documentation ({error})", unsure=False) from None
        return pages


def _field(answer: Any, name: str) -> Any:
    """Return a field of an answer; empty when the answer is not a JSON object."""
    try:
        return answer.get(name) or ""
    except (AttributeError, ValueError):
        return ""
