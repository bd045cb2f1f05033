"""Storms: many new incidents of one rule or one cluster within a minute. Choose those for one message, and make its summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec.structs import replace

from engine.model.incidents import DAWN, Incident, Symptom
from engine.model.notifications import STORM_PREFIX, STORM_RULE, Delivery, NotificationLog, Reason
from engine.model.proofs import PROOF_RULE
from engine.model.routes import Timings
from engine.model.rules import SEVERITIES
from engine.model.words import worded
from engine.route.decision import NOTHING, Decision
from engine.route.floods import Candidate
from engine.route.summary import number_of_incidents, summary_incident

STORM_S = 60.0  # within which incidents are counted
EDIT, GROWTH = timedelta(seconds=15), timedelta(seconds=60)  # the least time between two edits, and between two messages
FIRST = 2  # new incidents of a key within STORM_S that are sent at once
HOLD = timedelta(seconds=10)  # how long the next ones wait for a storm, from when they were known
JOIN = timedelta(minutes=5)  # how long after its last new incident a storm takes another one
_FOLDED = frozenset((Reason.OPENED, Reason.ESCALATED, Reason.REOPENED))
_OVER = frozenset(("resolved", "retracted", "merged"))
_DIGITS = 8


def storm_keys(incident: Incident) -> tuple[str, str]:
    """Return the keys of the storms that `incident` may be part of: of its rule in its cluster, and of its cluster."""
    cluster = incident.key[0]
    return f"{cluster}/{incident.rule}", f"{cluster}/"


def storm_id(key: str, now: datetime) -> str:
    """Return the id of a storm with `key` that begins at `now`."""
    return f"{_begin(key)}{now:%Y%m%dT%H%M%S%f}"


def is_of(id: str, key: str) -> bool:
    """Return whether `id` is that of a storm with `key`."""
    return id.startswith(_begin(key))


def is_storm(id: str) -> bool:
    """Return whether `id` is that of a storm."""
    return id.startswith(STORM_PREFIX)


def storming(
    waiting: Sequence[Candidate], recent: Mapping[str, int], size: int, open_storms: Sequence[str], now: datetime
) -> Mapping[str, list[Candidate]]:
    """Return those of one receiver's `waiting` candidates that become part of a storm, by its key.

    New incidents join a storm that is open. One begins when more than `size` incidents of a key are waiting or, by `recent`,
    had a message of their own within STORM_S, and one of the waiting is due; storms of a rule come before those of a cluster.
    What got worse or was reopened becomes part of a storm only when it is that many. An incident that has, or may have, a
    message of its own to be edited is never chosen.
    """
    remaining = [candidate for candidate in waiting if _is_foldable(candidate.entry) and candidate.incident.rule != PROOF_RULE]
    chosen: dict[str, list[Candidate]] = {}
    for level in (0, 1):
        groups: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in remaining:
            groups[storm_keys(candidate.incident)[level]].append(candidate)
        for key, candidates in groups.items():
            opened = [candidate for candidate in candidates if candidate.entry.reason is Reason.OPENED]
            is_due = any(candidate.entry.due_at <= now for candidate in candidates)
            if is_due and len(candidates) + recent.get(key, 0) > size:
                chosen[key] = candidates
            elif opened and any(is_of(id_, key) for id_ in open_storms):
                chosen[key] = opened
        parts = {id(candidate) for candidates in chosen.values() for candidate in candidates}
        remaining = [candidate for candidate in remaining if id(candidate) not in parts]
    return chosen


def held_until(candidate: Candidate, recent: Mapping[str, int]) -> datetime:
    """Return until when a new incident waits in case it becomes part of a storm: FIRST of its rule or cluster had a message of
    their own within STORM_S, by `recent`. DAWN when it does not wait."""
    is_new = candidate.entry.reason is Reason.OPENED and _is_foldable(candidate.entry)
    is_next = any(recent.get(key, 0) >= FIRST for key in storm_keys(candidate.incident))
    return candidate.entry.known_at + HOLD if is_new and is_next else DAWN


def storm_digest(id: str, members: Sequence[Incident], apart: Container[str] = ()) -> Incident:
    """Return the summary incident of `members` (at least one), the worst first.

    It is over when all of them are, and acknowledged when all others are. Its revision is a fingerprint of their states. Its
    severity is that of the worst open one that is not in `apart`, the ids of those that have messages of their own.
    """
    rules = {member.rule for member in members}
    cluster = members[0].key[0]
    incidents = number_of_incidents(len(members))
    if len(rules) == 1:
        incidents = worded("{incidents} of {rule}", incidents=incidents, rule=members[0].rule)
    remaining = [member for member in members if member.status not in _OVER]
    ends = [at for member in members if (at := member.resolved_at) is not None]
    summary = summary_incident(
        members,
        id=id,
        rule=STORM_RULE,
        title=worded(
            "{incidents} in cluster {cluster}: {number:,} still open",
            incidents=incidents,
            cluster=cluster,
            number=len(remaining),
        ),
        cause=worded(
            "They came within minutes, so they are one message, which is kept up to date. Each has a page of its own."
        ),
        symptoms=[_symptom(member) for member in in_order(members)],
    )
    together = [member for member in remaining if member.id not in apart]
    components = {member.component for member in members}
    states = {member.status for member in remaining}
    return replace(
        summary,
        revision=_fingerprint(members),
        severity=_worst(together or remaining or members),
        component=components.pop() if len(components) == 1 else "any",
        labels={"cluster": cluster},
        status="resolved" if not states else states.pop() if len(states) == 1 else "open",
        resolved_at=max(ends, default=None) if not remaining else None,
    )


def decide_storm(
    log: NotificationLog | None, summary: Incident, joined: int, timings: Timings, now: datetime, *, edits: bool
) -> Decision:
    """Decide whether, why and when to notify a receiver of a storm that has become `summary`.

    Args:
        log: its last notification; None: none yet.
        joined: how many of its incidents the receiver was not notified of.
        edits: the receiver updates one message, so it also gets the states of incidents; others get what joined, and the end.
    """
    if log is None:
        return Decision(Reason.DIGEST, now)
    total = number_of_incidents(summary.count)
    soon = log.at + (EDIT if edits else GROWTH)
    if summary.status == "resolved" and log.status != "resolved":
        return Decision(
            Reason.RESOLVED,
            max(soon, log.at + timedelta(seconds=timings.group_interval_s)),
            worded("all {incidents} are over", incidents=total),
        )
    if SEVERITIES.index(summary.severity) > SEVERITIES.index(log.severity):
        return Decision(
            Reason.ESCALATED,
            now,
            worded(
                "severity is {severity} now, was {earlier}: {incidents}",
                severity=summary.severity,
                earlier=log.severity,
                incidents=total,
            ),
        )
    if joined and not edits:
        return Decision(Reason.DIGEST, soon, worded("{number:,} more: {incidents}", number=joined, incidents=total))
    if edits and summary.revision != log.revision:
        return Decision(Reason.UPDATED, soon)
    if summary.status == "open" and timings.repeat_interval_s:
        return Decision(
            Reason.REPEATED,
            log.at + timedelta(seconds=timings.repeat_interval_s),
            worded("still open: {summary}", summary=summary.title),
        )
    return NOTHING


def in_order(members: Sequence[Incident]) -> list[Incident]:
    """Return incidents as a table shows them: open ones first, then by severity, then the oldest."""
    return sorted(members, key=_rank)


def _rank(member: Incident) -> tuple[bool, int, float, str]:
    at = member.first_seen.timestamp() if member.first_seen is not None else 0.0
    return member.status in _OVER, -SEVERITIES.index(member.severity), at, member.id


def _is_foldable(entry: Delivery) -> bool:
    return not entry.marks and entry.unsure_since is None and entry.reason in _FOLDED and not is_storm(entry.incident)


def _begin(key: str) -> str:
    return f"{STORM_PREFIX}{sha256(key.encode('utf-8', 'replace')).hexdigest()[:_DIGITS]}-"


def _worst(members: Sequence[Incident]) -> str:
    return SEVERITIES[max(SEVERITIES.index(member.severity) for member in members)]


def _fingerprint(members: Sequence[Incident]) -> int:
    states = sorted(f"{member.id} {member.revision} {member.status} {member.severity}" for member in members)
    return int.from_bytes(sha256("\n".join(states).encode()).digest()[:4], "big") >> 1


def _symptom(member: Incident) -> Symptom:
    title = worded(
        "{severity}, {status}: {title} ({id})",
        severity=member.severity,
        status=member.status,
        title=member.title,
        id=member.id,
    )
    return Symptom(member.rule, title, member.count, member.labels, member.first_seen)
