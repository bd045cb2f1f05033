"""A Slack channel as a receiver, with a bot token: post a message once, then edit it by its stored channel and ts.

Slack has no idempotency key. So every message carries metadata, nothing is retried inside a call, and after an attempt with
unknown outcome the channel is searched for that metadata before anything is posted again. One case remains: when the app may
not read the channel's history, such a message may be posted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from http.client import HTTPException
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct, ValidationError, convert
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from connectors.slack.answers import GONE, NotSlack, from_answer, from_failure, from_foreign_answer
from connectors.slack.client import StrictClient
from connectors.slack.message import Message, is_loud, parent, reply
from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt

API = "https://slack.com/api/"
EVENT_TYPE = "tocsin_incident"
MOST_UNNAMED = 2  # posts of one revision while no answer has the ts of the message
SKEW_S = 300  # the largest difference between Slack's clock and ours
PAGES = 10  # pages of a history to search

_UNREADABLE = frozenset(("missing_scope", "not_in_channel", "channel_not_found", "not_allowed_token_type", "no_permission"))


_UNNAMED = "Slack's answer says ok but does not name the message"


class _MessagePlace(Struct, frozen=True):
    channel: str
    ts: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]


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
    """A channel (`#name` in any script, or an id) of the workspace of `client`'s token."""

    channel: str
    client: WebClient

    @property
    def edits(self) -> bool:
        """True: the message of an incident is edited."""
        return True

    @property
    def records(self) -> bool:
        """False: routes decide what it is notified of."""
        return False

    @property
    def rate_limit_key(self) -> str:
        """The channel: Slack allows about one message per second and channel."""
        return f"slack:{self.client.base_url}:{self.channel}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post or edit the incident's message, then post changes to its thread.

        The receipt's marks: `channel` and `ts` of the message, and `reply`, the last reply in the thread. A failure half way
        returns the marks so far, so that the next attempt continues there.
        """
        session = _DeliverySession(self.client, self.channel, notification)
        try:
            session.deliver()
            receipt = Receipt(DeliveryState.DELIVERED)
        except SlackApiError as error:
            answer: _SlackAnswer = error.response
            receipt = from_answer(answer.status_code, str(_field(answer, "error")), answer.headers)
        except NotSlack as error:
            receipt = Receipt(DeliveryState.REJECTED, str(error)) if session.is_given_up else from_foreign_answer(error)
        except (OSError, HTTPException, SlackClientError, ValueError) as error:
            receipt = from_failure(error)
        return Receipt(receipt.state, receipt.why, receipt.after_s, receipt.unsure, session.marks, session.sent)


def open_receiver(channel: str, token: str, base_url: str = API) -> SlackReceiver:
    """Return the receiver of `channel`. Raises UsageError when the token would be sent unencrypted to `base_url`."""
    if not may_carry_secrets(base_url):
        raise UsageError(f"{base_url}: a token is sent to https addresses and to this machine only")
    return SlackReceiver(channel, StrictClient(token=token, base_url=base_url, retry_handlers=[]))


class _DeliverySession:
    """One delivery: up to two posts or edits; `marks` and `sent` (their number) are current after each."""

    def __init__(self, client: WebClient, channel: str, notification: Notification) -> None:
        self._client, self._channel, self._notification = client, channel, notification
        self.marks = dict(notification.marks)
        self.sent = 0
        self.is_given_up = False

    def deliver(self) -> None:
        self._recover()
        message = parent(self._notification.incident, self._notification.links, self._notification.lines)
        if not ("ts" in self.marks and self._edit(message)):
            self._post(message)
        self._reply()

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

    def _edit(self, message: Message) -> bool:
        """Edit the message; return False when it is deleted or can no longer be edited."""
        try:
            self._client.chat_update(
                channel=self.marks["channel"],
                ts=self.marks["ts"],
                text=message.text,
                blocks=message.blocks,
                metadata=self._metadata(),
            )
        except SlackApiError as error:
            if _field(error.response, "error") not in GONE:
                raise
            self.marks = {}
            return False
        self.sent += 1
        return True

    def _post(self, message: Message) -> None:
        place = self._place(
            self._client.chat_postMessage,
            channel=self._channel,
            text=message.text,
            blocks=message.blocks,
            metadata=self._metadata(),
            unfurl_links=False,
            unfurl_media=False,
        )
        self.marks = {"channel": place.channel, "ts": place.ts}

    def _place(self, post: Callable[..., Any], **message: Any) -> _MessagePlace:
        """Post a message and return its channel and ts.

        Raises NotSlack when the answer is ok without these: the next attempt searches for the message first. A revision is
        posted at most MOST_UNNAMED times like that.
        """
        revision, _, count = self.marks.get("unnamed", "").partition("/")
        times = int(count) if revision == str(self._notification.incident.revision) else 0
        if times >= MOST_UNNAMED:
            self.is_given_up = True
            raise NotSlack(f"{_UNNAMED}, {times} times: it is not posted again until there is something new", unsure=True)
        answer = post(**message)
        self.sent += 1
        try:
            place = convert(answer.data, _MessagePlace)
        except ValidationError:
            self.marks["unnamed"] = f"{self._notification.incident.revision}/{times + 1}"
            raise NotSlack(f"{_UNNAMED}; it is looked for before it is posted again", unsure=True) from None
        self.marks.pop("unnamed", None)
        return place

    def _reply(self) -> None:
        message, incident = reply(self._notification), self._notification.incident
        mark = f"{self._notification.reason.value}/{incident.revision}"
        if message is None or (self.marks.get("reply") == mark and self._notification.reason is not Reason.REPEATED):
            return
        if self._notification.unsure_since is None or not self._is_posted(mark, self._notification.unsure_since):
            self._place(
                self._client.chat_postMessage,
                channel=self.marks["channel"],
                thread_ts=self.marks["ts"],
                reply_broadcast=is_loud(self._notification.reason),
                text=message.text,
                blocks=message.blocks,
                metadata=self._metadata(mark),
            )
        self.marks["reply"] = mark

    def _is_posted(self, mark: str, since: datetime) -> bool:
        place = {"channel": self.marks["channel"], "ts": self.marks["ts"]}
        key = {"key": self._notification.incident.id, "reply": mark}
        return self._search(self._client.conversations_replies, place, key, since) is not None

    def _metadata(self, mark: str = "") -> dict[str, Any]:
        payload = {"key": self._notification.incident.id, **({"reply": mark} if mark else {})}
        return {"event_type": EVENT_TYPE, "event_payload": payload}

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
