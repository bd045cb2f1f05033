"""Compare the incidents of two sets of rules over the same input, and count the messages that they would have been. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum

from msgspec import Struct

from engine.model.incidents import Incident, extent
from engine.model.proofs import PROOF_RULE
from engine.model.routes import Route
from engine.route import route, routing_labels
from engine.route.hours import muted_by_hours

OVER = ("merged", "retracted")  # incidents with these states were no message, or are part of another one


class DifferenceKind(str, Enum):
    """What other rules make of an incident."""

    APPEARS = "appears"
    VANISHES = "vanishes"
    ROOT = "root"
    SEVERITY = "severity"
    COUNT = "count"


class IncidentDifference(Struct, frozen=True):
    """An incident that two sets of rules judge otherwise. `before`: None for one that appears; `after`: one that vanishes."""

    kind: DifferenceKind
    before: Incident | None
    after: Incident | None

    @property
    def incident(self) -> Incident:
        """The incident by the new rules, else by the old ones."""
        incident = self.after or self.before
        assert incident is not None  # one of both is given
        return incident

    @property
    def sentence(self) -> str:
        """What differs, in words."""
        before, after = self.before, self.after
        if before is None or after is None:
            return f"{self.kind.value}: {self.incident.title}"
        if self.kind is DifferenceKind.ROOT:
            return f"has another root: {before.title} -> {after.title}"
        if self.kind is DifferenceKind.SEVERITY:
            return f"is {after.severity} instead of {before.severity}: {after.title}"
        return f"counts {after.count:,} instead of {before.count:,}: {after.title}"


class ReceiverMessages(Struct, frozen=True):
    """How many incidents a receiver would have been told of: in all, by day (UTC; without those that have no time), and by
    rule, most first. `muted` were within its mute times."""

    receiver: str
    count: int
    by_day: Mapping[date, int]
    by_rule: Mapping[str, int]
    muted: int = 0


def reported(
    incidents: Iterable[Incident], since: datetime | None = None, until: datetime | None = None
) -> tuple[Incident, ...]:
    """Return the incidents that people would have been told of, in order of time; those without a time first.

    Args:
        since, until: only those that opened from `since` on, and before `until`; None is no bound. Incidents without a time
            are always among them.
    """
    told = [i for i in incidents if i.status not in OVER and not i.pending and i.rule != PROOF_RULE]
    within = [incident for incident in told if _is_within(_opened_at(incident), since, until)]
    return tuple(sorted(within, key=_order))


def differences(
    before: Sequence[Incident], after: Sequence[Incident], until: datetime | None = None
) -> tuple[IncidentDifference, ...]:
    """Return the differences between the incidents of two sets of rules, in order of time.

    Incidents are the same one when they overlap in time and have the same id; else the same scope, rule and entity; else an
    alert or a line of evidence in common. Each has one partner at most, and one difference: the first of another root, another
    severity, another count.

    Args:
        until: counts of incidents that went on after it are not compared: there was more to read for one than for the other.
    """
    pairs, alone_before, alone_after = _paired(before, after)
    changed = (difference for pair in pairs if (difference := _difference(*pair, until)) is not None)
    vanished = (IncidentDifference(DifferenceKind.VANISHES, incident, None) for incident in alone_before)
    appeared = (IncidentDifference(DifferenceKind.APPEARS, None, incident) for incident in alone_after)
    return tuple(sorted((*changed, *vanished, *appeared), key=lambda difference: _order(difference.incident)))


def messages(incidents: Iterable[Incident], tree: Route) -> tuple[ReceiverMessages, ...]:
    """Return how many of `incidents` each receiver of the routes would have been told of, most first."""
    by_day: dict[str, Counter[date]] = defaultdict(Counter)
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    muted: Counter[str] = Counter()
    for incident in incidents:
        at = _opened_at(incident)
        for target in route(routing_labels(incident), tree):
            if at is not None and muted_by_hours(target.hours, at):
                muted[target.receiver] += 1
                continue
            by_rule[target.receiver][incident.rule] += 1
            if at is not None:
                by_day[target.receiver][at.astimezone(UTC).date()] += 1
    counts = {name: by_rule[name].total() for name in {*by_rule, *muted}}
    return tuple(
        ReceiverMessages(name, number, dict(sorted(by_day[name].items())), dict(by_rule[name].most_common()), muted[name])
        for name, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _paired(
    before: Sequence[Incident], after: Sequence[Incident]
) -> tuple[list[tuple[Incident, Incident]], list[Incident], list[Incident]]:
    """Return the pairs, and the incidents of each side without a partner."""
    pairs: list[tuple[Incident, Incident]] = []
    left, right = list(before), list(after)
    steps: tuple[Callable[[Incident], Iterable[object]], ...] = (_ids, _keys, _parts)
    for step in steps:
        others: dict[object, list[Incident]] = defaultdict(list)
        for incident in right:
            for name in step(incident):
                others[name].append(incident)
        partners: dict[str, Incident] = {}
        for incident in left:
            partner = _partner(incident, (other for name in step(incident) for other in others[name]), partners)
            if partner is not None:
                partners[partner.id] = incident
                pairs.append((incident, partner))
        paired = {id(incident) for incident in partners.values()}
        left = [incident for incident in left if id(incident) not in paired]
        right = [incident for incident in right if incident.id not in partners]
    return pairs, left, right


def _partner(incident: Incident, others: Iterable[Incident], taken: Mapping[str, object]) -> Incident | None:
    """Return the first of `others` that is free and overlaps `incident`; None without one."""
    return next((other for other in others if other.id not in taken and _overlap(incident, other)), None)


def _ids(incident: Incident) -> Iterator[object]:
    yield incident.id


def _keys(incident: Incident) -> Iterator[object]:
    yield incident.key


def _parts(incident: Incident) -> Iterator[object]:
    yield from incident.alerts
    yield from (event.event_id for event in incident.evidence)


def _overlap(first: Incident, second: Incident) -> bool:
    spans = extent(first), extent(second)
    if spans[0] is None or spans[1] is None:
        return spans[0] is spans[1]
    return spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]


def _difference(before: Incident, after: Incident, until: datetime | None) -> IncidentDifference | None:
    ends = [side.last_seen for side in (before, after) if side.last_seen is not None]
    goes_on = until is not None and any(end >= until for end in ends)
    for kind, is_other in (
        (DifferenceKind.ROOT, before.rule != after.rule or before.key != after.key),
        (DifferenceKind.SEVERITY, before.severity != after.severity),
        (DifferenceKind.COUNT, before.count != after.count and not goes_on),
    ):
        if is_other:
            return IncidentDifference(kind, before, after)
    return None


def _is_within(at: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    return at is None or ((since is None or at >= since) and (until is None or at < until))


def _opened_at(incident: Incident) -> datetime | None:
    return incident.opened_at or incident.first_seen


def _order(incident: Incident) -> tuple[datetime, str]:
    return _opened_at(incident) or datetime.min.replace(tzinfo=UTC), incident.id
