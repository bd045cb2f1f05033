"""Which alert causes, continues or repeats which: links between alerts, decided from rules, keys and times (DESIGN 4.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec import Struct

from engine.model.incidents import Alert, Key
from engine.model.rules import SEVERITIES, Continues, Explains, Plan, Rule

_EVER = datetime.max.replace(tzinfo=UTC)


class Cause(Struct, frozen=True):
    """`root` explains the alert it is listed for, with `keys` equal keys; `in_earnest`: only because it is a severe one."""

    root: int
    keys: int
    in_earnest: bool


class Links(Struct, frozen=True):
    """Alerts by position, and what ties them.

    `parent`: the cause chosen for an alert; `others`: causes that were possible too. `same`: pairs that are one trouble
    (a refiring, or the same thing told with fewer names). `stage`: pairs (earlier, later stage).
    """

    alerts: Sequence[Alert]
    parent: Mapping[int, int]
    others: Mapping[int, tuple[int, ...]]
    same: Sequence[tuple[int, int]]
    stage: Sequence[tuple[int, int]]


def link(alerts: Sequence[Alert], plan: Plan) -> Links:
    """Return the links between `alerts`, of one scope and of rules of `plan`; their order does not matter to what is linked."""
    rules = plan.rules()
    silences = {c.rule.id for c in plan.correlations if c.absence is not None}
    ends = [_reach(alert, alert.key[1] in silences) for alert in alerts]
    by_rule: dict[str, list[int]] = defaultdict(list)
    for position, alert in enumerate(alerts):
        by_rule[alert.key[1]].append(position)
    possible = {p: _causes(p, alerts, ends, by_rule, rules) for p in range(len(alerts))}
    excused = {p for p, ranked in possible.items() if ranked and alerts[ranked[0].root].severity == SEVERITIES[0]}
    causes = {p: kept for p, ranked in possible.items() if (kept := [c for c in ranked if _counts(c, excused)])}
    return Links(
        alerts,
        parent={position: ranked[0].root for position, ranked in causes.items()},
        others={position: tuple(cause.root for cause in ranked[1:]) for position, ranked in causes.items()},
        same=[*_refirings(alerts, rules), *_retold(alerts, by_rule)],
        stage=[*_stages(alerts, by_rule, rules)],
    )


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


def _causes(
    position: int,
    alerts: Sequence[Alert],
    ends: Sequence[datetime],
    by_rule: Mapping[str, list[int]],
    rules: Mapping[str, Rule],
) -> list[Cause]:
    """Return the possible causes of an alert, the best first: most equal keys, then earliest, then key."""
    symptom = alerts[position]
    best: dict[int, Cause] = {}
    for root, entry in _explainers(symptom.key[1], by_rule, rules):
        cause = alerts[root]
        if (
            root == position
            or cause.status == "pending"
            or (cause.hearsay and not set(cause.sources) & set(symptom.sources))
            or not _is_severe(cause, entry)
            or not _equal(cause, symptom, entry.by)
        ):
            continue
        if "source" in entry.by and _is_of_another(cause, symptom):
            continue
        if _in_time(cause, ends[root], symptom, entry):
            found = Cause(root, len(entry.by), entry.at_least != SEVERITIES[0])
            best[root] = max(best.get(root, found), found, key=lambda cause: (cause.keys, not cause.in_earnest))
    return sorted(best.values(), key=lambda cause: (-cause.keys, alerts[cause.root].starts_at, alerts[cause.root].key))


def _explainers(
    symptom_rule: str, by_rule: Mapping[str, list[int]], rules: Mapping[str, Rule]
) -> Iterator[tuple[int, Explains]]:
    for rule_id, positions in by_rule.items():
        for entry in rules[rule_id].explains:
            if symptom_rule in entry.rules:
                yield from ((position, entry) for position in positions)


def _counts(cause: Cause, excused: Container[int]) -> bool:
    """Tell whether a cause is one: not what has to be severe and is only the sign of something that informs."""
    return not (cause.in_earnest and cause.root in excused)


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


def _retold(alerts: Sequence[Alert], by_rule: Mapping[str, list[int]]) -> Iterator[tuple[int, int]]:
    """Yield (fuller, vaguer) pairs of one rule: the vaguer lacks entity values (a bare trace) and contradicts nothing."""
    for positions in by_rule.values():
        for vague in positions:
            if not is_vague(alerts[vague].key):
                continue
            fuller = [p for p in positions if p != vague and _covers(alerts[p], alerts[vague])]
            if fuller:
                yield min(fuller, key=lambda p: (-_shared(alerts[p], alerts[vague]), alerts[p].starts_at, alerts[p].key)), vague


def is_vague(key: Key) -> bool:
    """Tell whether an entity lacks a value that its rule names entities by."""
    return any(value.startswith("?") for _, value in key[2])


def fills_in(full: Key, vague: Key) -> bool:
    """Tell whether `full` names all that `vague` names, and what it lacks."""
    known = dict(full[2])
    named = ((name, value) for name, value in vague[2] if not value.startswith("?"))
    return not is_vague(full) and is_vague(vague) and all(known.get(name) == value for name, value in named)


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


def _stages(alerts: Sequence[Alert], by_rule: Mapping[str, list[int]], rules: Mapping[str, Rule]) -> Iterator[tuple[int, int]]:
    """Yield (earlier, later) where the later alert's rule continues the earlier's."""
    for position, alert in enumerate(alerts):
        for entry in rules[alert.key[1]].continues:
            before = [p for p in by_rule.get(entry.rule, ()) if _is_next(alerts[p], alert, entry)]
            if before:
                yield max(before, key=lambda p: (alerts[p].starts_at, alerts[p].key)), position


def _is_next(earlier: Alert, later: Alert, entry: Continues) -> bool:
    if not _equal(later, earlier, entry.by):
        return False
    if not (earlier.dated and later.dated):
        return True
    within = timedelta(seconds=entry.within_s)
    return timedelta(0) <= later.starts_at - earlier.starts_at and later.starts_at - earlier.last_seen <= within


def _by_key(alerts: Iterable[Alert]) -> Mapping[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for position, alert in enumerate(alerts):
        found[alert.key].append(position)
    return found
