"""Digests of backfill and of floods: their members, when they are due, and the outcome for the members. Pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.deliver.planning import WAITING, Policy
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.model.phrases import moment
from engine.route import digest, flood_digest, is_storm, notification_log

QUIET = timedelta(seconds=60)  # a backfill digest is due when no further old incident came for this long ...
LONGEST = timedelta(minutes=10)  # ... but this long after the first one at the latest
GATHER = timedelta(seconds=10)  # how long a flood digest waits for more members
FLOOD_PREFIX = "flood-"  # of the ids of flood digests
FLOOD_INTERVAL = timedelta(seconds=60)  # between two flood digests to one receiver


class Digest(Struct, frozen=True):
    """A planned digest: the summary incident, its outbox entry, and the entries that it settles with their incidents, in the
    same order. `table`, of a storm: all its incidents, those that were reported before included."""

    incident: Incident
    entry: Delivery
    members: tuple[Delivery, ...]
    incidents: tuple[Incident, ...]
    table: tuple[Incident, ...] = ()


def digest_id(members: Sequence[Delivery]) -> str:
    """Return the id of the backfill digest of `members`: the same when later members join, and after a restart."""
    return f"backfill-{min(entry.known_at for entry in members):%Y%m%dT%H%M%S%f}"


def flood_id(now: datetime) -> str:
    """Return the id of a flood digest that begins at `now`."""
    return f"{FLOOD_PREFIX}{now:%Y%m%dT%H%M%S%f}"


def is_digest(entry: Delivery) -> bool:
    """Return whether `entry` is that of a digest itself, not of a member."""
    is_one = entry.reason in (Reason.BACKFILL, Reason.DIGEST) and entry.state is not DeliveryState.BACKFILL
    return is_one or is_storm(entry.incident)


def plan_digest(
    policy: Policy, members: Sequence[Delivery], incidents: Mapping[str, Incident], entry: Delivery | None, now: datetime
) -> Digest:
    """Return the backfill digest of `members`, all of one receiver; `entry` is the digest's entry in the outbox, or None."""
    member_incidents = [incidents[member.incident] for member in members]
    summary = digest(digest_id(members), member_incidents, policy.max_age_s)
    times = [member.known_at for member in members]
    due_at = min(times) if policy.hurry else min(max(times) + QUIET, min(times) + LONGEST)
    if max(times) > now:  # a time of a wrong clock: do not wait for it
        due_at = now
    fresh = Delivery(members[0].receiver, summary.id, summary.revision, Reason.BACKFILL, min(times), due_at)
    return Digest(summary, updated_entry(fresh, entry), tuple(members), tuple(member_incidents))


def plan_flood(
    members: Sequence[Delivery], incidents: Mapping[str, Incident], entry: Delivery | None, due_at: datetime
) -> Digest:
    """Return the flood digest of `members`, all of one receiver. A new one is due at `due_at`; one in the outbox keeps its
    time."""
    member_incidents = [incidents[member.incident] for member in members]
    summary = flood_digest(members[0].digest, member_incidents)
    known_at = min(member.known_at for member in members)
    fresh = Delivery(members[0].receiver, summary.id, summary.revision, Reason.DIGEST, known_at, due_at)
    if entry is not None and not entry.attempts:
        fresh = replace(fresh, due_at=entry.due_at)
    return Digest(summary, updated_entry(fresh, entry), tuple(members), tuple(member_incidents))


def folded(entry: Delivery, id: str) -> Delivery:
    """Return `entry` folded: as it waits for the digest `id`."""
    how = "in one message that is kept up to date" if is_storm(id) else "in a digest"
    why = f"too many at once to be sent one by one: sent {how}"
    return replace(entry, state=DeliveryState.FOLDED, digest=id, why=why)


def notified_members(members: Iterable[Delivery], log: NotificationLog, now: datetime) -> Sequence[Delivery]:
    """Return the backfill `members` that were in a sent digest, marked as notified.

    Of that digest only the notification log `log` is left, so these are the members that joined before it; one that joined
    after `now`, by a clock that was wrong, counts as a member too.
    """
    why = f"sent in the digest of {moment(log.at)}, as it was old when it was first seen"
    return [
        replace(member, attempt_at=log.at, why=why) for member in members if member.known_at <= log.at or member.known_at > now
    ]


def settlements(sent_digest: Digest, entry: Delivery, now: datetime, has_fallback: bool) -> Iterator[Settlement]:
    """Yield the settlements of the members after an attempt to send their digest, which left the digest's `entry`.

    Members of a refused digest stay with it, unless there is a fallback: then each member is rejected, and planned for the
    fallback by itself.
    """
    for member, incident in zip(sent_digest.members, sent_digest.incidents, strict=True):
        if entry.state is DeliveryState.REJECTED and has_fallback:
            yield Settlement(
                replace(member, state=DeliveryState.REJECTED, why=entry.why, attempt_at=now, digest=""), now, is_attempt=False
            )
        elif entry.state is DeliveryState.DELIVERED and member.state is DeliveryState.BACKFILL:
            why = f"sent in the digest of {moment(now)}, as it was old when it was first seen"
            yield Settlement(replace(member, attempt_at=now, why=why), now, is_attempt=False)
        elif entry.state is DeliveryState.DELIVERED:
            number, kind = (
                len(sent_digest.table or sent_digest.members),
                "message about a storm" if sent_digest.table else "digest",
            )
            why = f"sent in the {kind} of {moment(now)}, with {number:,} in all"
            settled = replace(
                member, state=DeliveryState.DELIVERED, reason=Reason.DIGEST, news="", attempts=0, attempt_at=now, why=why
            )
            storm = member.digest if is_storm(member.digest) else ""
            yield Settlement(settled, now, notification_log(incident, now, {}, member.digest, storm))


def updated_entry(fresh: Delivery, entry: Delivery | None) -> Delivery:
    """Return the entry of a digest: the one in the outbox, updated for new members, or `fresh` where that one is finished."""
    if entry is None or not (entry.state in WAITING or entry.revision == fresh.revision):
        return fresh
    return replace(entry, revision=fresh.revision, due_at=entry.due_at if entry.attempts else fresh.due_at)
