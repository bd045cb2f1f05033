"""What is told to whom: why, how it went, and what a receiver knows. Decided by engine/route, carried out by engine/deliver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from msgspec import Struct, field

from engine.model.incidents import Incident
from engine.model.links import LineLinks, Link

DIGEST_RULE = "backfill"  # the rule of the incident that stands for many old ones, told to a receiver at once
FLOOD_RULE = "flood"  # of the one that stands for many that came at once
DIGEST_HEADINGS = {DIGEST_RULE: "Older", FLOOD_RULE: "Among them"}  # of the symptoms, which are the incidents it stands for


class Reason(str, Enum):
    """Why a receiver is told of an incident; kept with every delivery."""

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
    """Where a delivery stands. Found `sending` at the start: the process ended during the attempt, its outcome is unknown.

    `muted` waits for the end of a silence or a time interval; `backfill` was old when it was first seen, and is told in a
    digest only (`attempt_at` says when); `folded` waits for the digest of a flood.
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
    """What a receiver knows of an incident since `at`. `marks` are the receiver's own (a Slack channel and message).

    `digest`: the digest it was told in; empty when it has a message of its own.
    """

    rule: str
    status: str
    severity: str
    at: datetime
    stage: str = ""
    revision: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


class IncidentChange(Struct, frozen=True):
    """A turn in what an incident is: the revision that brought it, what kind it is, and one sentence (empty: it opened)."""

    incident: Incident
    reason: Reason
    news: str = ""


class Notification(Struct, frozen=True):
    """What to tell a receiver.

    `news` is one sentence on what changed since it was told last, empty when only counts, times and evidence did.
    `marks` are what its last receipt gave. `unsure_since`: an earlier attempt began then and its outcome is unknown, so a
    receiver that can look does so before it tells the same twice. `links` lead on: to the incident's page, into its logs.
    `lines` do so from each line of evidence, by event id, and `query` narrows the logs in Kibana to the incident. `changes`:
    for receivers that keep a record, all changes since they were told last, oldest first.
    """

    incident: Incident
    reason: Reason
    news: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)
    unsure_since: datetime | None = None
    links: tuple[Link, ...] = ()
    changes: tuple[IncidentChange, ...] = ()
    lines: Mapping[str, LineLinks] = field(default_factory=dict)
    query: str = ""


class Receipt(Struct, frozen=True):
    """How an attempt went: delivered; retry_later, in `after_s` seconds if the receiver said so; or rejected, `why`.

    `unsure`: it may have been delivered all the same. `marks`: what the receiver wants back next time, also after a failure
    half way; None leaves what is known of it. `messages`: how many were sent, for the pacing of its rate limit key.
    """

    state: DeliveryState
    why: str = ""
    after_s: float | None = None
    unsure: bool = False
    marks: Mapping[str, str] | None = None
    messages: int = 1


class Delivery(Struct, frozen=True):
    """The outbox's one entry for a receiver and an incident: always about the newest revision.

    `known_at`: when the notifier first saw that there is something to tell. `due_at`: not sent before. `attempts` counts
    those since the last success, the last one begun at `attempt_at`. `unsure_since` and `marks`: see Notification. `digest`:
    of a folded one, the id of the digest that tells of it.
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
    """How an attempt that was over at `at` leaves an entry, and what the receiver knows by it (None: nothing new).

    `is_attempt`: the entry was sent itself, or in a digest; else it only changes with one that was.
    """

    entry: Delivery
    at: datetime
    told: NotificationLog | None = None
    is_attempt: bool = True


class Attempt(Struct, frozen=True):
    """One attempt to tell `receiver` of an incident, over at `at`: what for, and how it went."""

    receiver: str
    revision: int
    reason: Reason
    at: datetime
    outcome: DeliveryState
    why: str = ""


class ReceiverStatus(Struct, frozen=True):
    """How it stands between a receiver and an incident: what is on its way or was sent last, what the receiver knows, and how
    many attempts were delivered."""

    receiver: str
    entry: Delivery | None
    told: NotificationLog | None
    delivered: int
