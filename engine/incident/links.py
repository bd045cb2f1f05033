"""Which alert causes, continues or repeats which: links between alerts, decided from rules, keys and times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice, pairwise

from msgspec import Struct

from engine.model.incidents import OTHERS, Alert, AlertKey
from engine.model.rules import SEVERITIES, Continues, Explains, Plan, Rule

MOST_CAUSES: int | None = 2  # of one rule, for one alert: which of them is the best, and whether there are others
_DAWN = datetime.min.replace(tzinfo=UTC)
_EVER = datetime.max.replace(tzinfo=UTC)


class Cause(Struct, frozen=True):
    """`root` explains the alert it is listed for, with `keys` equal keys; `in_earnest`: only because it is a severe one."""

    root: int
    keys: int
    in_earnest: bool


class AlertLinks(Struct, frozen=True):
    """Alerts by position, and what ties them.

    `parent`: the cause chosen for an alert; `others`: causes that were possible too. `same`: pairs that are one trouble
    (a refiring, or the same thing told with fewer names). `stage`: pairs (earlier, later stage).
    """

    alerts: Sequence[Alert]
    parent: Mapping[int, int]
    others: Mapping[int, tuple[int, ...]]
    same: Sequence[tuple[int, int]]
    stage: Sequence[tuple[int, int]]


def link(alerts: Sequence[Alert], plan: Plan) -> AlertLinks:
    """Return the links between `alerts`, of one scope and of rules of `plan`; their order does not matter to what is linked."""
    rules = plan.rules()
    silences = {c.rule.id for c in plan.correlations if c.absence is not None}
    ends = [_reach(alert, alert.key[1] in silences) for alert in alerts]
    peers = Peers(alerts)
    explainers = _explainers(peers, rules)
    best = {p: next(_causes(p, alerts, ends, peers, explainers, ()), None) for p in range(len(alerts))}
    excused = {p for p, cause in best.items() if cause and alerts[cause.root].severity == SEVERITIES[0]}
    ranked = {p: list(_causes(p, alerts, ends, peers, explainers, excused)) if cause else [] for p, cause in best.items()}
    causes = {p: kept for p, kept in ranked.items() if kept}
    return AlertLinks(
        alerts,
        parent={position: kept[0].root for position, kept in causes.items()},
        others={position: tuple(cause.root for cause in kept[1:]) for position, kept in causes.items()},
        same=[*_refirings(alerts, rules), *_retold(alerts, peers)],
        stage=[*_stages(alerts, peers, rules)],
    )


class Peers:
    """Alerts of a rule by position, in order of their start, and those of them that have a value for a key: so that an alert
    is compared with those that it may be linked to, and not with all."""

    def __init__(self, alerts: Sequence[Alert]) -> None:
        self._alerts = alerts
        self.by_rule: dict[str, list[int]] = defaultdict(list)
        for position in sorted(range(len(alerts)), key=lambda p: (alerts[p].starts_at, alerts[p].key)):
            self.by_rule[alerts[position].key[1]].append(position)
        self._rank = {p: n for positions in self.by_rule.values() for n, p in enumerate(positions)}
        self._undated = {alert.key[1] for alert in alerts if not alert.dated}
        self._latest: dict[int, tuple[Sequence[int], list[datetime]]] = {}  # until when any so far went on, by list
        self._by_value: dict[tuple[str, str], Mapping[str, Sequence[int]]] = {}

    def agreeing(self, rule_id: str, with_: Alert, by: Iterable[tuple[str, str]]) -> Sequence[int]:
        """Return the alerts of `rule_id`, earliest first, that have a value in common with `with_` for one of the pairs `by`
        (key of theirs, key of `with_`), the most telling one; all of them when `by` is empty."""
        choices = [self._with_values(rule_id, theirs, keyed(with_, its)) for theirs, its in by]
        if not choices:
            return self.by_rule.get(rule_id, ())
        lists = min(choices, key=lambda lists: sum(map(len, lists)))
        return lists[0] if len(lists) == 1 else self.in_order({p for each in lists for p in each})

    def in_reach(
        self, rule_id: str, positions: Sequence[int], ends: Sequence[datetime], symptom: Alert, entry: Explains
    ) -> Sequence[int]:
        """Return those of `positions`, alerts of one rule, earliest first, that may be in time to explain `symptom`."""
        if not symptom.dated or rule_id in self._undated or not positions:
            return positions
        before, after = timedelta(seconds=entry.before_s), timedelta(seconds=entry.after_s)
        begin = symptom.starts_at - after if symptom.starts_at - _DAWN > after else _DAWN
        end = symptom.starts_at + before if _EVER - symptom.starts_at > before else _EVER
        known = self._latest.get(id(positions))
        if known is None or known[0] is not positions:
            known = positions, list(accumulate((ends[p] for p in positions), max))
            if isinstance(positions, list):  # a tuple was made for one symptom
                self._latest[id(positions)] = known
        first = bisect_left(known[1], begin)
        return positions[first : bisect_right(positions, end, key=lambda p: self._alerts[p].starts_at)]

    def in_order(self, positions: Iterable[int]) -> Sequence[int]:
        """Return positions of one rule, earliest first."""
        return tuple(sorted(positions, key=self._rank.__getitem__))

    def _with_values(self, rule_id: str, name: str, values: Iterable[str]) -> list[Sequence[int]]:
        of_value = self._by_value.get((rule_id, name))
        if of_value is None:
            made: dict[str, list[int]] = defaultdict(list)
            for position in self.by_rule.get(rule_id, ()):
                for value in keyed(self._alerts[position], name):
                    made[value].append(position)
            of_value = self._by_value[rule_id, name] = dict(made)
        return [of_value[value] for value in values if value in of_value]


def keyed(alert: Alert, name: str) -> frozenset[str]:
    """Return every value that `alert` has for the key `name`: of its entity, else captures, else labels; empty when missing."""
    entity = dict(alert.key[2])
    if name in entity:
        return frozenset() if entity[name].startswith("?") else frozenset((entity[name],))
    if name in alert.captures:
        return frozenset(str(value) for value in alert.captures[name].values)
    if name == "source":
        return frozenset(alert.sources)
    return frozenset((alert.labels[name],)) if name in alert.labels else frozenset()


Explainers = Mapping[str, Sequence[tuple[str, Sequence[Explains]]]]


def _explainers(peers: Peers, rules: Mapping[str, Rule]) -> Explainers:
    """Return by the rule of a symptom the rules that there are alerts of and that explain it, with their entries for it."""
    made: dict[str, list[tuple[str, Sequence[Explains]]]] = {rule_id: [] for rule_id in peers.by_rule}
    for rule_id in peers.by_rule:
        entries = rules[rule_id].explains
        for symptom in {symptom for entry in entries for symptom in entry.rules} & made.keys():
            made[symptom].append((rule_id, [entry for entry in entries if symptom in entry.rules]))
    return made


def _causes(
    position: int,
    alerts: Sequence[Alert],
    ends: Sequence[datetime],
    peers: Peers,
    explainers: Explainers,
    excused: Container[int],
) -> Iterator[Cause]:
    """Yield the causes of an alert, the best first: most equal keys, then earliest, then key; of one rule the best two.

    Not what has to be severe and is only the sign of something that informs (`excused`).
    """
    found: list[Cause] = []
    for rule_id, entries in explainers.get(alerts[position].key[1], ()):
        of_rule = _causes_of(position, rule_id, entries, alerts, ends, peers)
        found += islice((cause for cause in of_rule if not (cause.in_earnest and cause.root in excused)), MOST_CAUSES)
    yield from sorted(found, key=lambda cause: (-cause.keys, alerts[cause.root].starts_at, alerts[cause.root].key))


def _causes_of(
    position: int,
    rule_id: str,
    entries: Sequence[Explains],
    alerts: Sequence[Alert],
    ends: Sequence[datetime],
    peers: Peers,
) -> Iterator[Cause]:
    """Yield the alerts of one rule that may be the cause, the best first, each once: as it is by its best entry."""
    seen: set[int] = set()
    for keys in sorted({len(entry.by) for entry in entries}, reverse=True):
        alike = [entry for entry in entries if len(entry.by) == keys]
        agreeing = ((entry, peers.agreeing(rule_id, alerts[position], entry.by.items())) for entry in alike)
        lists = [peers.in_reach(rule_id, some, ends, alerts[position], entry) for entry, some in agreeing]
        for root in lists[0] if len(lists) == 1 else peers.in_order({p for each in lists for p in each}):
            if root in seen or root == position:
                continue
            explaining = [entry for entry in alike if _explains(alerts[root], ends[root], alerts[position], entry)]
            if explaining:
                seen.add(root)
                yield Cause(root, keys, all(entry.at_least != SEVERITIES[0] for entry in explaining))


def _explains(cause: Alert, end: datetime, symptom: Alert, entry: Explains) -> bool:
    return (
        cause.status != "pending"
        and (not cause.hearsay or bool(set(cause.sources) & set(symptom.sources)))
        and _is_severe(cause, entry)
        and _in_time(cause, end, symptom, entry)
        and _equal(cause, symptom, entry.by)
        and not ("source" in entry.by and _is_of_another(cause, symptom))
    )


def _is_severe(root: Alert, entry: Explains) -> bool:
    return SEVERITIES.index(root.severity) >= SEVERITIES.index(entry.at_least)


def _equal(root: Alert, other: Alert, by: Mapping[str, str]) -> bool:
    return all(keyed(root, mine) & keyed(other, theirs) for mine, theirs in by.items())


def _is_of_another(root: Alert, symptom: Alert) -> bool:
    """Tell whether two alerts out of one log are about different things: a worker's log speaks of all its connectors."""
    return any(
        (known := keyed(root, name)) and not known & keyed(symptom, name)
        for name, value in symptom.key[2]
        if not value.startswith("?")
    )


def _in_time(root: Alert, end: datetime, symptom: Alert, entry: Explains) -> bool:
    if not (root.dated and symptom.dated):
        return True
    if symptom.starts_at < root.starts_at - timedelta(seconds=entry.before_s):
        return False
    if end == _EVER:
        return True
    goes_on_s = (symptom.last_seen - end).total_seconds()
    return symptom.starts_at <= end + timedelta(seconds=entry.after_s) and (entry.until_s is None or goes_on_s <= entry.until_s)


def _reach(alert: Alert, silence: bool) -> datetime:
    """Return until when an alert is the cause of others: a silence that nothing has ended goes on for ever."""
    if alert.ends_at is not None:
        return alert.ends_at
    return _EVER if silence else alert.last_seen


def _refirings(alerts: Sequence[Alert], rules: Mapping[str, Rule]) -> Iterator[tuple[int, int]]:
    """Yield neighbouring alerts of one key with no more than the rule's reopen_window between them."""
    for positions in _by_key(alerts).values():
        ordered = sorted(positions, key=lambda position: alerts[position].starts_at)
        for earlier, later in pairwise(ordered):
            window = timedelta(seconds=rules[alerts[later].key[1]].reopen_window_s)
            over = alerts[earlier].ends_at or alerts[earlier].last_seen
            if not (alerts[earlier].dated and alerts[later].dated) or alerts[later].starts_at - over <= window:
                yield earlier, later


def _retold(alerts: Sequence[Alert], peers: Peers) -> Iterator[tuple[int, int]]:
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
    """Tell whether an entity lacks a value that its rule names entities by; all that are not kept apart are nobody's double."""
    return any(value.startswith("?") and value != OTHERS for _, value in key[2])


def is_of_others(key: AlertKey) -> bool:
    """Tell whether an entity stands for all of its rule that are not kept apart."""
    return any(value == OTHERS for _, value in key[2])


def fills_in(full: AlertKey, vague: AlertKey) -> bool:
    """Tell whether `full` names all that `vague` names, and what it lacks."""
    known = dict(full[2])
    if not is_vague(vague) or is_vague(full) or is_of_others(full):
        return False
    return all(known.get(name) == value for name, value in vague[2] if not value.startswith("?"))


def _covers(full: Alert, vague: Alert) -> bool:
    """Return whether `full` fills in what `vague` lacks, with no number or time between them that differs.

    They must have something in common besides: a capture, or the log they stand in.
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


def _stages(alerts: Sequence[Alert], peers: Peers, rules: Mapping[str, Rule]) -> Iterator[tuple[int, int]]:
    """Yield (earlier, later) where the later alert's rule continues the earlier's."""
    for position, alert in enumerate(alerts):
        for entry in rules[alert.key[1]].continues:
            agreeing = peers.agreeing(entry.rule, alert, [(theirs, mine) for mine, theirs in entry.by.items()])
            before = next((p for p in reversed(agreeing) if _is_next(alerts[p], alert, entry)), None)
            if before is not None:
                yield before, position


def _is_next(earlier: Alert, later: Alert, entry: Continues) -> bool:
    if not _equal(later, earlier, entry.by):
        return False
    if not (earlier.dated and later.dated):
        return True
    within = timedelta(seconds=entry.within_s)
    return timedelta(0) <= later.starts_at - earlier.starts_at and later.starts_at - earlier.last_seen <= within


def _by_key(alerts: Iterable[Alert]) -> Mapping[AlertKey, list[int]]:
    found: dict[AlertKey, list[int]] = defaultdict(list)
    for position, alert in enumerate(alerts):
        found[alert.key].append(position)
    return found
