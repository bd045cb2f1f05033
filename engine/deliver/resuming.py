"""Correct the entries and times that an earlier process left, or the own ones after a clock correction. Pure.

Times in the store come from a wall clock, which may have been wrong; the notifier would wait for one in the future.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.deliver.planning import RETRY_AT_MOST_S
from engine.model.notifications import Delivery, DeliveryState, NotificationLog

LEASE = timedelta(minutes=10)  # the longest time for an attempt; receivers time out far earlier
_UNSURE_BEFORE = timedelta(days=7)  # how far back to search for a message that was sent at an unknown time
_LONGEST_WAIT = timedelta(seconds=RETRY_AT_MOST_S)


def resumed(entry: Delivery, now: datetime) -> Delivery:
    """Return `entry` as a new process resumes it: an interrupted attempt is unsure, a rejected entry is tried again."""
    entry = bounded(entry, now)
    if entry.state is DeliveryState.SENDING:
        due_at = min(entry.due_at, now)
        return replace(
            entry, state=DeliveryState.RETRY_LATER, unsure_since=entry.unsure_since or entry.attempt_at, due_at=due_at
        )
    return replace(entry, state=DeliveryState.QUEUED) if entry.state is DeliveryState.REJECTED else entry


def bounded(entry: Delivery, now: datetime) -> Delivery:
    """Return `entry` without times after `now`; a retry is due within an hour at most.

    `known_at` of a backfill entry is unchanged, as the id of the digest is made from it.
    """
    names_digest = entry.state is DeliveryState.BACKFILL
    known_at = entry.known_at if names_digest else min(entry.known_at, now)
    attempt_at = None if entry.attempt_at is None else min(entry.attempt_at, now)
    unsure_since = entry.unsure_since
    if entry.state is DeliveryState.SENDING and unsure_since is None:
        unsure_since = entry.attempt_at
    if unsure_since is not None and unsure_since > now:
        unsure_since = now - _UNSURE_BEFORE
    ahead = max(timedelta(0), (entry.attempt_at or entry.known_at) - now)
    due_at = entry.due_at - ahead  # a wait that began in the future begins now
    if entry.state is DeliveryState.RETRY_LATER:
        due_at = min(due_at, now + _LONGEST_WAIT)
    return replace(entry, known_at=known_at, attempt_at=attempt_at, unsure_since=unsure_since, due_at=due_at)


def is_expired(entry: Delivery, now: datetime) -> bool:
    """Return whether an attempt is in flight for longer than its lease."""
    return entry.state is DeliveryState.SENDING and entry.attempt_at is not None and entry.attempt_at + LEASE <= now


def shift_entry(entry: Delivery, by: timedelta) -> Delivery:
    """Return `entry` with its times shifted by `by`, after the clock was corrected by that much."""
    return replace(
        entry,
        known_at=entry.known_at if entry.state is DeliveryState.BACKFILL else entry.known_at + by,
        due_at=entry.due_at + by,
        attempt_at=_shift(entry.attempt_at, by),
        unsure_since=_shift(entry.unsure_since, by),
    )


def shift_log(log: NotificationLog, by: timedelta) -> NotificationLog:
    """Return `log` with its time shifted by `by`, after the clock was corrected by that much."""
    return replace(log, at=log.at + by)


def _shift(at: datetime | None, by: timedelta) -> datetime | None:
    return None if at is None else at + by
