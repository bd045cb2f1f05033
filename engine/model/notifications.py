"""Notifications: reasons, deliveries, receipts, and the log of sent notifications. Decided by engine/route, sent by
engine/deliver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from msgspec import Struct, field

from engine.model.incidents import Incident
from engine.model.links import LineLinks, Link
from engine.model.words import ENGLISH, Words, marked

DIGEST_RULE = "backfill"  # rule of the digest of old incidents, which a receiver is sent in one message
FLOOD_RULE = "flood"  # rule of the digest of many incidents that opened at once
STORM_RULE = "storm"  # rule of the message about many incidents of one rule or cluster, which is kept up to date
TEST_RULE = "test"  # rule of the incident by which a receiver is tried
AUDIT_RULE = "audit"  # rule of the digest of what may break in a cluster
STORM_PREFIX = "storm-"  # of the ids of storms
_HEADINGS = marked("Older", "Among them", "Incidents", "Risks")  # of the symptoms of a digest, which are its members
DIGEST_HEADINGS = dict(zip((DIGEST_RULE, FLOOD_RULE, STORM_RULE, AUDIT_RULE), _HEADINGS, strict=True))


class Reason(str, Enum):
    """Why a receiver is notified of an incident; stored with every delivery."""

    OPENED = "opened"
    UPDATED = "updated"
    ESCALATED = "escalated"
    RESOLVED = "resolved"
    REOPENED = "reopened"
    ROOT_CHANGED = "root_changed"
    MERGED = "merged"
    REPEATED = "repeated"
    BACKFILL = "backfill"
    DIGEST = "digest"
    TEST = "test"


class DeliveryState(str, Enum):
    """The state of a delivery. `sending` when the notifier starts: the process ended during the attempt, its outcome is
    unknown.

    `muted` waits for the end of a silence or a time interval; `backfill` was old when it was first seen, and is sent in a
    digest only (`attempt_at` is its time); `folded` waits for the digest of a flood.
    """

    QUEUED = "queued"
    SENDING = "sending"
    DELIVERED = "delivered"
    RETRY_LATER = "retry_later"
    REJECTED = "rejected"
    MUTED = "muted"
    BACKFILL = "backfill"
    FOLDED = "folded"


class NotificationLog(Struct, frozen=True):
    """The last notification of an incident that a receiver was sent, at `at`. `marks` are the receiver's own data (a Slack
    channel and message).

    `digest`: the id of the digest or storm that reported the incident; empty when it has a message of its own. `storm`: the id
    of the storm that it is part of, also when it has a message of its own later. `owner`: who had it; `acts`:
    how many acts there were on it.
    """

    rule: str
    status: str
    severity: str
    at: datetime
    stage: str = ""
    revision: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    storm: str = ""
    owner: str = ""
    acts: int = 0


class IncidentChange(Struct, frozen=True):
    """A change of an incident: its revision, the kind of change, and one sentence (empty: it opened)."""

    incident: Incident
    reason: Reason
    news: str = ""


class Notification(Struct, frozen=True):
    """The content of one message to a receiver.

    `news` is one sentence on what changed since the last notification, empty when only counts, times and evidence did.
    `marks` are those of the last receipt. `unsure_since`: an earlier attempt began then and its outcome is unknown, so a
    receiver that can search its messages does so before it sends this one. `links` lead to the incident's page and its logs;
    `lines` lead there from each line of evidence, by event id; `query` is the filter of the incident in Kibana. `changes`, for
    receivers that keep a record: all changes since the last notification, oldest first. `members`, of a storm: its incidents,
    in the order of its table. `last_at`: when the last notification of the incident was delivered; None: there was none.
    `words`: tocsin's own in the language of the receiver; all other texts are in it already.
    """

    incident: Incident
    reason: Reason
    news: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)
    unsure_since: datetime | None = None
    last_at: datetime | None = None
    links: tuple[Link, ...] = ()
    changes: tuple[IncidentChange, ...] = ()
    lines: Mapping[str, LineLinks] = field(default_factory=dict)
    query: str = ""
    members: tuple[Incident, ...] = ()
    words: Words = ENGLISH


class Receipt(Struct, frozen=True):
    """The outcome of an attempt: delivered; retry_later, after `after_s` seconds if the receiver asked for that; or rejected.
    `why` is the reason of a failure.

    `unsure`: it may have been delivered despite the failure. `marks`: data that the receiver gets back with the next
    notification, also after a partial failure; None keeps the earlier marks. `messages`: how many were sent, for its rate
    limit.
    """

    state: DeliveryState
    why: str = ""
    after_s: float | None = None
    unsure: bool = False
    marks: Mapping[str, str] | None = None
    messages: int = 1


class Delivery(Struct, frozen=True):
    """The outbox's only entry for a receiver and an incident: always about the newest revision.

    `known_at`: when the notifier first had something to send. `due_at`: it is not sent earlier. `attempts` counts attempts
    since the last success; the last one began at `attempt_at`. `unsure_since` and `marks`: see Notification. `digest`: the id
    of the digest or storm that reports a folded entry.
    """

    receiver: str
    incident: str
    revision: int
    reason: Reason
    known_at: datetime
    due_at: datetime
    state: DeliveryState = DeliveryState.QUEUED
    news: str = ""
    attempts: int = 0
    attempt_at: datetime | None = None
    unsure_since: datetime | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    digest: str = ""


class Settlement(Struct, frozen=True):
    """The entry after an attempt that ended at `at`, and the new log of the receiver (None: no change).

    `is_attempt`: the entry itself was sent, or was part of a digest; otherwise it only changes with one that was sent.
    """

    entry: Delivery
    at: datetime
    log: NotificationLog | None = None
    is_attempt: bool = True


class Attempt(Struct, frozen=True):
    """One attempt to notify `receiver` of an incident, with its reason and outcome; it ended at `at`."""

    receiver: str
    revision: int
    reason: Reason
    at: datetime
    outcome: DeliveryState
    why: str = ""


class ReceiverStatus(Struct, frozen=True):
    """Status of an incident at one receiver: its entry in the outbox, the last notification, and how many attempts were
    delivered."""

    receiver: str
    entry: Delivery | None
    log: NotificationLog | None
    delivered: int
