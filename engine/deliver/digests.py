"""Digests of what was old when it was first seen, and of floods: which entries belong into one, when it is due, and what
becomes of them when it was told. Decisions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.deliver.planning import WAITING, Policy
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.model.phrases import moment
from engine.route import digest, flood_digest, knows

QUIET = timedelta(seconds=60)  # without another old incident, then the digest is told
LONGEST = timedelta(minutes=10)  # after the first one it is told all the same
GATHER = timedelta(seconds=10)  # how long the digest of a flood waits for more
FLOOD_INTERVAL = timedelta(seconds=60)  # between two of them for a receiver


class Digest(Struct, frozen=True):
    """A digest on its way: the incident that stands for `members`, its entry in the outbox, and what each member was then."""

    incident: Incident
    entry: Delivery
    members: tuple[Delivery, ...]
    incidents: tuple[Incident, ...]


def digest_id(members: Sequence[Delivery]) -> str:
    """Return the id of the digest of old `members`: the same while others join, and after a restart."""
    return f"backfill-{min(entry.known_at for entry in members):%Y%m%dT%H%M%S%f}"


def flood_id(now: datetime) -> str:
    """Return the id of a digest that a flood begins at `now`."""
    return f"flood-{now:%Y%m%dT%H%M%S%f}"


def is_digest(entry: Delivery) -> bool:
    """Say whether `entry` is a digest's own."""
    return entry.reason in (Reason.BACKFILL, Reason.DIGEST) and entry.state is not DeliveryState.BACKFILL


def plan_digest(
    policy: Policy, members: Sequence[Delivery], incidents: Mapping[str, Incident], entry: Delivery | None, now: datetime
) -> Digest:
    """Return the digest of old `members`, which are one receiver's; `entry` is what is in the outbox for it now."""
    of_members = [incidents[member.incident] for member in members]
    standing_for = digest(digest_id(members), of_members, policy.max_age_s)
    times = [member.known_at for member in members]
    due_at = min(times) if policy.hurry else min(max(times) + QUIET, min(times) + LONGEST)
    if max(times) > now:  # taken from a clock that was wrong: nothing waits for such a time
        due_at = now
    fresh = Delivery(members[0].receiver, standing_for.id, standing_for.revision, Reason.BACKFILL, min(times), due_at)
    return Digest(standing_for, _joined(fresh, entry), tuple(members), tuple(of_members))


def plan_flood(
    members: Sequence[Delivery], incidents: Mapping[str, Incident], entry: Delivery | None, due_at: datetime
) -> Digest:
    """Return the digest of folded `members`, which are one receiver's; a new one is due at `due_at`."""
    of_members = [incidents[member.incident] for member in members]
    standing_for = flood_digest(members[0].digest, of_members)
    known_at = min(member.known_at for member in members)
    fresh = Delivery(members[0].receiver, standing_for.id, standing_for.revision, Reason.DIGEST, known_at, due_at)
    if entry is not None and not entry.attempts:
        fresh = replace(fresh, due_at=entry.due_at)
    return Digest(standing_for, _joined(fresh, entry), tuple(members), tuple(of_members))


def folded(entry: Delivery, id: str) -> Delivery:
    """Return `entry` as it waits for the digest `id`."""
    why = "too many at once to be told one by one: told in a digest"
    return replace(entry, state=DeliveryState.FOLDED, digest=id, why=why)


def told_in_digest(members: Iterable[Delivery], told: NotificationLog, now: datetime) -> Sequence[Delivery]:
    """Return those of old `members` that the digest has told of which `told` is all that is known, as they are from then on.

    One that is said to have joined after `now` was there all the same.
    """
    why = f"told in the digest of {moment(told.at)}, as it was old when it was first seen"
    return [replace(each, attempt_at=told.at, why=why) for each in members if each.known_at <= told.at or each.known_at > now]


def settlements(planned: Digest, entry: Delivery, now: datetime, has_fallback: bool) -> Iterator[Settlement]:
    """Yield what becomes of the members by an attempt to tell `planned` that left `entry`.

    What is refused stays with its digest, unless another receiver is to be told instead: that is decided for each by itself.
    """
    for member, incident in zip(planned.members, planned.incidents, strict=True):
        if entry.state is DeliveryState.REJECTED and has_fallback:
            yield Settlement(
                replace(member, state=DeliveryState.REJECTED, why=entry.why, attempt_at=now, digest=""), now, is_attempt=False
            )
        elif entry.state is DeliveryState.DELIVERED and member.state is DeliveryState.BACKFILL:
            why = f"told in the digest of {moment(now)}, as it was old when it was first seen"
            yield Settlement(replace(member, attempt_at=now, why=why), now, is_attempt=False)
        elif entry.state is DeliveryState.DELIVERED:
            why = f"told in the digest of {moment(now)}, with {len(planned.members):,} in all"
            ended = replace(
                member, state=DeliveryState.DELIVERED, reason=Reason.DIGEST, news="", attempts=0, attempt_at=now, why=why
            )
            yield Settlement(ended, now, knows(incident, now, {}, member.digest))


def _joined(fresh: Delivery, entry: Delivery | None) -> Delivery:
    """Return the entry of a digest: `fresh`, or what is in the outbox with what has joined."""
    if entry is None or not (entry.state in WAITING or entry.revision == fresh.revision):
        return fresh
    return replace(entry, revision=fresh.revision, due_at=entry.due_at if entry.attempts else fresh.due_at)
