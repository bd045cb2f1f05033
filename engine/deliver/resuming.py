"""What a process makes of the entries and times that an earlier one left, or of its own when the clock was put right. Pure.

Times of the store were taken from a wall clock, which may have been wrong: one that lies ahead of now would be waited for.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.deliver.planning import RETRY_AT_MOST_S
from engine.model.notifications import Delivery, DeliveryState, NotificationLog

LEASE = timedelta(minutes=10)  # an attempt takes that long at most; a receiver gives up far earlier
_UNSURE_BEFORE = timedelta(days=7)  # where a message is looked for that was sent at an unknown time
_LONGEST_WAIT = timedelta(seconds=RETRY_AT_MOST_S)


def resumed(entry: Delivery, now: datetime) -> Delivery:
    """Return an entry as a new process takes it up: an attempt cut short is unsure, a refusal is worth another try."""
    entry = bounded(entry, now)
    if entry.state is DeliveryState.SENDING:
        due_at = min(entry.due_at, now)
        return replace(
            entry, state=DeliveryState.RETRY_LATER, unsure_since=entry.unsure_since or entry.attempt_at, due_at=due_at
        )
    return replace(entry, state=DeliveryState.QUEUED) if entry.state is DeliveryState.REJECTED else entry


def bounded(entry: Delivery, now: datetime) -> Delivery:
    """Return `entry` without times from the future; what waits to be tried again does so for an hour at most.

    When it was first seen what is to be told in a digest stays as it is: that names the digest.
    """
    is_named_by_it = entry.state is DeliveryState.BACKFILL
    known_at = entry.known_at if is_named_by_it else min(entry.known_at, now)
    attempt_at = None if entry.attempt_at is None else min(entry.attempt_at, now)
    unsure_since = entry.unsure_since
    if entry.state is DeliveryState.SENDING and unsure_since is None:
        unsure_since = entry.attempt_at
    if unsure_since is not None and unsure_since > now:
        unsure_since = now - _UNSURE_BEFORE
    due_at = entry.due_at - max(timedelta(0), (entry.attempt_at or entry.known_at) - now)  # a wait from then begins now
    if entry.state is DeliveryState.RETRY_LATER:
        due_at = min(due_at, now + _LONGEST_WAIT)
    return replace(entry, known_at=known_at, attempt_at=attempt_at, unsure_since=unsure_since, due_at=due_at)


def is_expired(entry: Delivery, now: datetime) -> bool:
    """Say whether an attempt has been under way for so long that nobody will say how it ended."""
    return entry.state is DeliveryState.SENDING and entry.attempt_at is not None and entry.attempt_at + LEASE <= now


def entry_moved(entry: Delivery, by: timedelta) -> Delivery:
    """Return `entry` after the clock was put right `by` so much: what it waits for comes as much later."""
    return replace(
        entry,
        known_at=entry.known_at if entry.state is DeliveryState.BACKFILL else entry.known_at + by,
        due_at=entry.due_at + by,
        attempt_at=_moved(entry.attempt_at, by),
        unsure_since=_moved(entry.unsure_since, by),
    )


def told_moved(told: NotificationLog, by: timedelta) -> NotificationLog:
    """Return `told` after the clock was put right `by` so much."""
    return replace(told, at=told.at + by)


def _moved(at: datetime | None, by: timedelta) -> datetime | None:
    return None if at is None else at + by
