"""The digest of what was old when it was first seen: which entries belong into it, and when it is due. Decisions only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.deliver.planning import WAITING, Policy
from engine.model.incidents import Incident
from engine.model.notifications import Delivery, Reason, State, Told
from engine.model.phrases import moment
from engine.route import digest

QUIET = timedelta(seconds=60)  # without another old incident, then the digest is told
LONGEST = timedelta(minutes=10)  # after the first one it is told all the same


class Digest(Struct, frozen=True):
    """A digest on its way: the incident that stands for `members`, and its entry in the outbox."""

    incident: Incident
    entry: Delivery
    members: tuple[Delivery, ...]


def untold(entries: Iterable[Delivery]) -> Mapping[str, Sequence[Delivery]]:
    """Return the entries that no digest has told yet, by receiver."""
    found: dict[str, list[Delivery]] = {}
    for entry in entries:
        if entry.state is State.BACKFILL and entry.attempt_at is None:
            found.setdefault(entry.receiver, []).append(entry)
    return found


def digest_id(members: Sequence[Delivery]) -> str:
    """Return the id of the digest of `members`: the same while others join, and after a restart."""
    return f"backfill-{min(entry.known_at for entry in members):%Y%m%dT%H%M%S%f}"


def plan_digest(
    policy: Policy, members: Sequence[Delivery], incidents: Mapping[str, Incident], entry: Delivery | None
) -> Digest:
    """Return the digest of `members`, which are one receiver's; `entry` is what is in the outbox for it now."""
    known = [incidents[member.incident] for member in members]
    standing_for = digest(digest_id(members), known, policy.max_age_s)
    times = [member.known_at for member in members]
    due_at = min(times) if policy.hurry else min(max(times) + QUIET, min(times) + LONGEST)
    fresh = Delivery(members[0].receiver, standing_for.id, standing_for.revision, Reason.BACKFILL, min(times), due_at)
    if entry is not None and (entry.state in WAITING or entry.revision == fresh.revision):
        due_at = entry.due_at if entry.attempts else due_at
        fresh = replace(entry, revision=fresh.revision, due_at=due_at)
    return Digest(standing_for, fresh, tuple(members))


def told_in_digest(members: Iterable[Delivery], told: Told) -> Sequence[Delivery]:
    """Return the entries of `members` that were told by the digest that `told` speaks of, as they are from then on."""
    why = f"told in the digest of {moment(told.at)}, as it was old when it was first seen"
    return [replace(member, attempt_at=told.at, why=why) for member in members if member.known_at <= told.at]
