"""Which alert explains, continues or repeats which: links between alerts, decided from rules, keys and times. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from engine.incident.link_table import KeyPairs, LinkTable, RuleLink, earlier, later, link_table
from engine.model.incidents import EVER, OTHERS, Alert, AlertKey
from engine.model.rules import SEVERITIES, Plan

_LOW, *_ABOVE_LOW = SEVERITIES[1:]
MOST_CAUSES: int | None = 2  # of one rule, for one alert: the best of them, and whether there are others


class Cause(Struct, frozen=True):
    """A possible cause of an alert.

    Attributes:
        root: the position of the alert that explains it.
        keys: how many keys are equal.
        in_earnest: whether it explains only because it is severe.
    """

    root: int
    keys: int
    in_earnest: bool


class AlertLinks(Struct, frozen=True):
    """Alerts, referred to by position, and the links between them.

    Attributes:
        parent: the cause that was chosen for an alert.
        others: the causes that were possible too, the best first.
        same: pairs of alerts of one trouble: a refiring, or the same trouble with fewer names (the fuller alert first).
        stage: pairs of an alert and one that continues it.
    """

    alerts: Sequence[Alert]
    parent: Mapping[int, int]
    others: Mapping[int, tuple[int, ...]]
    same: Sequence[tuple[int, int]]
    stage: Sequence[tuple[int, int]]


def link_alerts(alerts: Sequence[Alert], plan: Plan) -> AlertLinks:
    """Return the links between `alerts` of one scope and of rules of `plan`, whatever their order."""
    table = link_table(plan)
    alerts = _lowered(alerts, table)
    ends = [_reach(alert, alert.key[1] in table.absences) for alert in alerts]
    peers = Peers(alerts)
    explaining = _explaining(peers, table)
    best = {p: next(_causes(p, alerts, ends, peers, explaining, ()), None) for p in range(len(alerts))}
    excused = {p for p, cause in best.items() if cause and alerts[cause.root].severity == SEVERITIES[0]}
    ranked = {p: list(_causes(p, alerts, ends, peers, explaining, excused)) if cause else [] for p, cause in best.items()}
    causes = {p: of_alert for p, of_alert in ranked.items() if of_alert}
    return AlertLinks(
        alerts,
        parent={position: of_alert[0].root for position, of_alert in causes.items()},
        others={position: tuple(cause.root for cause in of_alert[1:]) for position, of_alert in causes.items()},
        same=[*_refirings(alerts, table), *_repetitions(alerts, peers)],
        stage=[*_stages(alerts, peers, table)],
    )


def _lowered(alerts: Sequence[Alert], table: LinkTable) -> Sequence[Alert]:
    """Return `alerts`, those less severe that have occurred once and that a link with `lowers` explains."""
    lowering = [(p, link) for p, alert in enumerate(alerts) for link in table.explaining(alert.key[1]) if link.lowers]
    if not lowering:
        return alerts
    by_rule: dict[str, list[Alert]] = defaultdict(list)
    for alert in alerts:
        by_rule[alert.key[1]].append(alert)
    lower = {
        position
        for position, link in lowering
        if alerts[position].count == 1 and alerts[position].severity in _ABOVE_LOW
        for cause in by_rule[link.first]
        if _explains(cause, _reach(cause, link.first in table.absences), alerts[position], link)
    }
    return [replace(alert, severity=_LOW) if position in lower else alert for position, alert in enumerate(alerts)]


class Peers:
    """Positions of alerts by rule, and by rule, key and value, in order of their start.

    With it an alert is compared only with those that it may be linked to.
    """

    def __init__(self, alerts: Sequence[Alert]) -> None:
        self._alerts = alerts
        self.by_rule: dict[str, list[int]] = defaultdict(list)
        for position in sorted(range(len(alerts)), key=lambda p: (alerts[p].starts_at, alerts[p].key)):
            self.by_rule[alerts[position].key[1]].append(position)
        self._rank = {p: n for positions in self.by_rule.values() for n, p in enumerate(positions)}
        self._undated = {alert.key[1] for alert in alerts if not alert.dated}
        self._latest: dict[int, tuple[Sequence[int], list[datetime]]] = {}  # by id of a list: the latest end up to each place
        self._by_value: dict[tuple[str, str], Mapping[str, Sequence[int]]] = {}

    def agreeing(self, rule_id: str, alert: Alert, by: Iterable[tuple[str, str]]) -> Sequence[int]:
        """Return the alerts of `rule_id`, earliest first, that may agree with `alert` by all pairs of `by`.

        They have a value in common for that pair which leaves the fewest; all of them are returned when `by` is empty.

        Args:
            by: pairs of a key of theirs and a key of `alert`.
        """
        choices = [self._with_values(rule_id, theirs, key_values(alert, own)) for theirs, own in by]
        if not choices:
            return self.by_rule.get(rule_id, ())
        lists = min(choices, key=lambda lists: sum(map(len, lists)))
        return lists[0] if len(lists) == 1 else self.in_order({p for positions in lists for p in positions})

    def in_reach(
        self, rule_id: str, positions: Sequence[int], ends: Sequence[datetime], symptom: Alert, link: RuleLink
    ) -> Sequence[int]:
        """Return those of `positions`, alerts of one rule, earliest first, that may be in time to explain `symptom`."""
        if not symptom.dated or rule_id in self._undated or not positions:
            return positions
        begin, end = earlier(symptom.starts_at, link.after), later(symptom.starts_at, link.before)
        cached = self._latest.get(id(positions))
        if cached is None or cached[0] is not positions:
            cached = positions, list(accumulate((ends[p] for p in positions), max))
            if isinstance(positions, list):  # a tuple was made for one symptom
                self._latest[id(positions)] = cached
        first = bisect_left(cached[1], begin)
        return positions[first : bisect_right(positions, end, key=lambda p: self._alerts[p].starts_at)]

    def in_order(self, positions: Iterable[int]) -> Sequence[int]:
        """Return positions of one rule, earliest first."""
        return tuple(sorted(positions, key=self._rank.__getitem__))

    def _with_values(self, rule_id: str, name: str, values: Iterable[str]) -> list[Sequence[int]]:
        of_value = self._by_value.get((rule_id, name))
        if of_value is None:
            index: dict[str, list[int]] = defaultdict(list)
            for position in self.by_rule.get(rule_id, ()):
                for value in key_values(self._alerts[position], name):
                    index[value].append(position)
            of_value = self._by_value[rule_id, name] = dict(index)
        return [of_value[value] for value in values if value in of_value]


def key_values(alert: Alert, name: str) -> frozenset[str]:
    """Return the values of an alert's key: of its entity, else captures, else labels; empty when it is missing."""
    entity = dict(alert.key[2])
    if name in entity:
        return frozenset() if entity[name].startswith("?") else frozenset((entity[name],))
    if name in alert.captures:
        return frozenset(str(value) for value in alert.captures[name].values)
    if name == "source":
        return frozenset(alert.sources)
    return frozenset((alert.labels[name],)) if name in alert.labels else frozenset()


Explaining = Mapping[str, Mapping[str, Sequence[RuleLink]]]


def _explaining(peers: Peers, table: LinkTable) -> Explaining:
    """Return by rule of a symptom and rule of a cause, both with alerts, the links between them."""
    explaining: dict[str, dict[str, list[RuleLink]]] = {}
    for rule_id in peers.by_rule:
        causes = explaining.setdefault(rule_id, {})
        for link in table.explaining(rule_id):
            if link.first in peers.by_rule and not link.lowers:
                causes.setdefault(link.first, []).append(link)
    return explaining


def _causes(
    position: int,
    alerts: Sequence[Alert],
    ends: Sequence[datetime],
    peers: Peers,
    explaining: Explaining,
    excused: Container[int],
) -> Iterator[Cause]:
    """Yield the causes of an alert, the best first: most equal keys, then earliest, then by key; of one rule the best two.

    Args:
        excused: alerts whose own best cause only informs; they explain nothing that asks for a severe cause.
    """
    causes: list[Cause] = []
    for rule_id, links in explaining.get(alerts[position].key[1], {}).items():
        of_rule = _causes_of(position, rule_id, links, alerts, ends, peers)
        causes += islice((cause for cause in of_rule if not (cause.in_earnest and cause.root in excused)), MOST_CAUSES)
    yield from sorted(causes, key=lambda cause: (-cause.keys, alerts[cause.root].starts_at, alerts[cause.root].key))


def _causes_of(
    position: int,
    rule_id: str,
    links: Sequence[RuleLink],
    alerts: Sequence[Alert],
    ends: Sequence[datetime],
    peers: Peers,
) -> Iterator[Cause]:
    """Yield the alerts of one rule that may be the cause, the best first, each once: by the best of its links."""
    yielded: set[int] = set()
    for keys in sorted({len(link.by) for link in links}, reverse=True):
        of_length = [link for link in links if len(link.by) == keys]
        agreeing = ((link, peers.agreeing(rule_id, alerts[position], link.by)) for link in of_length)
        lists = [peers.in_reach(rule_id, positions, ends, alerts[position], link) for link, positions in agreeing]
        for root in lists[0] if len(lists) == 1 else peers.in_order({p for positions in lists for p in positions}):
            if root in yielded or root == position:
                continue
            holding = [link for link in of_length if _explains(alerts[root], ends[root], alerts[position], link)]
            if holding:
                yielded.add(root)
                yield Cause(root, keys, all(link.in_earnest for link in holding))


def _explains(cause: Alert, end: datetime, symptom: Alert, link: RuleLink) -> bool:
    return (
        cause.status != "pending"
        and (not cause.hearsay or bool(set(cause.sources) & set(symptom.sources)))
        and SEVERITIES.index(cause.severity) >= SEVERITIES.index(link.at_least)
        and _is_in_time(cause, end, symptom, link)
        and _agree(cause, symptom, link.by)
        and not (any(own == "source" for own, _ in link.by) and _is_of_another(cause, symptom))
    )


def _agree(first: Alert, second: Alert, by: KeyPairs) -> bool:
    return all(key_values(first, own) & key_values(second, theirs) for own, theirs in by)


def _is_of_another(root: Alert, symptom: Alert) -> bool:
    """Return whether two alerts out of one log are about different entities: a worker's log names all its connectors."""
    return any(
        (values := key_values(root, name)) and not values & key_values(symptom, name)
        for name, value in symptom.key[2]
        if not value.startswith("?")
    )


def _is_in_time(root: Alert, end: datetime, symptom: Alert, link: RuleLink) -> bool:
    if not (root.dated and symptom.dated):
        return True
    if symptom.starts_at < root.starts_at - link.before:
        return False
    if end == EVER:
        return True
    in_time = symptom.starts_at <= end + link.after
    return in_time and (link.until is None or symptom.last_seen - end <= link.until)


def _reach(alert: Alert, is_absence: bool) -> datetime:
    """Return until when an alert explains others: a silence that is not over does so for ever."""
    if alert.ends_at is not None:
        return alert.ends_at
    return EVER if is_absence else alert.last_seen


def _refirings(alerts: Sequence[Alert], table: LinkTable) -> Iterator[tuple[int, int]]:
    """Yield neighbouring alerts of one key with no more than the rule's `reopen_window` between them."""
    for positions in _by_key(alerts).values():
        ordered = sorted(positions, key=lambda position: alerts[position].starts_at)
        for before, after in pairwise(ordered):
            window = table.reopen[alerts[after].key[1]]
            over = alerts[before].ends_at or alerts[before].last_seen
            if not (alerts[before].dated and alerts[after].dated) or alerts[after].starts_at - over <= window:
                yield before, after


def _repetitions(alerts: Sequence[Alert], peers: Peers) -> Iterator[tuple[int, int]]:
    """Yield (fuller, vaguer) pairs of one rule: the vaguer lacks entity values (a bare trace) and contradicts nothing."""
    for rule_id, positions in peers.by_rule.items():
        for vague in positions:
            if not is_vague(alerts[vague].key):
                continue
            named = [(name, name) for name, value in alerts[vague].key[2] if not value.startswith("?")]
            fuller = [p for p in peers.agreeing(rule_id, alerts[vague], named) if _covers(alerts[p], alerts[vague])]
            if fuller:
                yield min(fuller, key=lambda p: (-_shared(alerts[p], alerts[vague]), alerts[p].starts_at, alerts[p].key)), vague


def is_vague(key: AlertKey) -> bool:
    """Return whether an entity lacks a value of its rule's `entity`; the entity of all others is not vague."""
    return any(value.startswith("?") and value != OTHERS for _, value in key[2])


def is_of_others(key: AlertKey) -> bool:
    """Return whether an entity stands for all entities of its rule that are not kept apart."""
    return any(value == OTHERS for _, value in key[2])


def fills_in(full: AlertKey, vague: AlertKey) -> bool:
    """Return whether `full` has all values that `vague` has, and those that it lacks."""
    if not is_vague(vague) or is_vague(full) or is_of_others(full):
        return False
    values = dict(full[2])
    return all(values.get(name) == value for name, value in vague[2] if not value.startswith("?"))


def _covers(full: Alert, vague: Alert) -> bool:
    """Return whether `full` has the entity values that `vague` lacks, and no capture or time contradicts that.

    They must have something else in common: a capture, or a source.
    """
    if not fills_in(full.key, vague.key):
        return False
    together = set(full.captures) & set(vague.captures)
    agree = all(set(full.captures[name].values) & set(vague.captures[name].values) for name in together)
    undated = not (full.dated and vague.dated)
    related = bool(together) or bool(set(full.sources) & set(vague.sources))
    return agree and related and (undated or full.starts_at <= vague.starts_at <= (full.ends_at or full.last_seen))


def _shared(full: Alert, vague: Alert) -> int:
    return len(set(full.captures) & set(vague.captures))


def _stages(alerts: Sequence[Alert], peers: Peers, table: LinkTable) -> Iterator[tuple[int, int]]:
    """Yield (earlier, later) positions where the rule of the later alert continues that of the earlier one."""
    for position, alert in enumerate(alerts):
        for link in table.continued(alert.key[1]):
            agreeing = peers.agreeing(link.first, alert, link.by)
            before = next((p for p in reversed(agreeing) if _is_next(alerts[p], alert, link)), None)
            if before is not None:
                yield before, position


def _is_next(before: Alert, after: Alert, link: RuleLink) -> bool:
    if not _agree(before, after, link.by):
        return False
    if not (before.dated and after.dated):
        return True
    return timedelta(0) <= after.starts_at - before.starts_at and after.starts_at - before.last_seen <= link.after


def _by_key(alerts: Iterable[Alert]) -> Mapping[AlertKey, list[int]]:
    by_key: dict[AlertKey, list[int]] = defaultdict(list)
    for position, alert in enumerate(alerts):
        by_key[alert.key].append(position)
    return by_key
