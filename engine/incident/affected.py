"""Which alerts may have to do with one another: what happens to others changes nothing for them. Pure.

Told from sights alone, so it is less strict than engine/incident/links: what is linked there is near here, never the other
way round. tests/unit/incident/test_affected.py holds the two together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from msgspec import Struct

from engine.identity_cache import remembered
from engine.incident.links import fills_in, is_vague
from engine.model.incidents import DAWN, EVER, AlertInterval, AlertKey, Incident, extent
from engine.model.rules import Plan, Rule


class Tie(Struct, frozen=True):
    """Alerts of `second` may be linked to one of `first` when they start in [-before, +after] of its time and agree `by` keys:
    pairs of a key of `first` and one of `second`."""

    first: str
    second: str
    by: tuple[tuple[str, str], ...]
    before: timedelta
    after: timedelta


class Ties(Struct, frozen=True):
    """What a plan links: `outward` by the first rule, `inward` by the second. By rule, `again` is within what an alert is the
    same trouble as the last one of its key, and `back` how long before an alert there may be something near to it."""

    outward: Mapping[str, Sequence[Tie]]
    inward: Mapping[str, Sequence[Tie]]
    again: Mapping[str, timedelta]
    back: Mapping[str, timedelta]


@remembered
def ties(plan: Plan) -> Ties:
    """Return what the rules of `plan` link by `explains`, `continues` and `reopen_window`."""
    outward: dict[str, list[Tie]] = defaultdict(list)
    inward: dict[str, list[Tie]] = defaultdict(list)
    rules = plan.rules().values()
    for tie in (each for rule in rules for each in _ties(rule)):
        outward[tie.first].append(tie)
        inward[tie.second].append(tie)
    again = {rule.id: timedelta(seconds=rule.reopen_window_s) for rule in rules}
    back = {
        rule: max((within, *(tie.before for tie in outward[rule]), *(tie.after for tie in inward[rule])))
        for rule, within in again.items()
    }
    return Ties(dict(outward), dict(inward), again, back)


def _ties(rule: Rule) -> Iterator[Tie]:
    for entry in rule.explains:
        by, before, after = tuple(entry.by.items()), timedelta(seconds=entry.before_s), timedelta(seconds=entry.after_s)
        yield from (Tie(rule.id, symptom, by, before, after) for symptom in entry.rules)
    for stage in rule.continues:
        by = tuple((theirs, mine) for mine, theirs in stage.by.items())
        yield Tie(stage.rule, rule.id, by, timedelta(), timedelta(seconds=stage.within_s))


def since(alerts: Iterable[AlertInterval], incidents: Iterable[Incident], known: Ties) -> datetime:
    """Return since when there may be something near to one of these: the beginning of time when one of them bears none."""
    starts = (before(each.starts_at, known.back.get(each.key[1], timedelta())) if each.until else DAWN for each in alerts)
    told = ((extent(each), each.alerts) for each in incidents)
    spans = ((when[0] if when else DAWN, known.again.get(key[1], timedelta())) for when, keys in told for key in keys)
    return min((*starts, *(before(at, within) for at, within in spans)), default=EVER)


class AffectedAlerts:
    """What is near to what among the `sights` of one scope."""

    def __init__(self, sights: Iterable[AlertInterval], known: Ties) -> None:
        of_key: dict[AlertKey, list[AlertInterval]] = defaultdict(list)
        of_rule: dict[str, list[AlertInterval]] = defaultdict(list)
        vague: dict[str, list[AlertInterval]] = defaultdict(list)
        for sight in sights:
            of_key[sight.key].append(sight)
            of_rule[sight.key[1]].append(sight)
            if is_vague(sight.key):
                vague[sight.key[1]].append(sight)
        self._ties = known
        self._of_key = {key: _Timeline(each) for key, each in of_key.items()}
        self._of_rule = {rule: _Timeline(each) for rule, each in of_rule.items()}
        self._vague = {rule: _Timeline(each) for rule, each in vague.items()}

    def around(self, seeds: Iterable[AlertInterval]) -> set[AlertInterval]:
        """Return `seeds` and everything that is near to one of them, directly or through others."""
        found = set(seeds)
        waiting = list(found)
        while waiting:
            fresh = set(self._near(waiting.pop())) - found
            found |= fresh
            waiting += fresh
        return found

    def told_of(self, incident: Incident) -> Iterator[AlertInterval]:
        """Yield the alerts that `incident` may have been told for: of its keys, in its time or close to it."""
        when = extent(incident)
        for key in incident.alerts:
            within = self._ties.again.get(key[1], timedelta())
            if key in self._of_key:
                yield from self._of_key[key].between(when and before(when[0], within), when and after(when[1], within))

    def _near(self, one: AlertInterval) -> Iterator[AlertInterval]:
        key, rule, again = one.key, one.key[1], self._ties.again.get(one.key[1], timedelta())
        yield from _beside(one, self._of_key.get(key), again)
        for tie in self._ties.outward.get(rule, ()):
            others = _beside(one, self._of_rule.get(tie.second), max(tie.before, tie.after))
            yield from (other for other in others if _tied(one, other, tie))
        for tie in self._ties.inward.get(rule, ()):
            others = _beside(one, self._of_rule.get(tie.first), max(tie.before, tie.after))
            yield from (other for other in others if _tied(other, one, tie))
        retold = _beside(one, (self._of_rule if is_vague(key) else self._vague).get(rule), timedelta())
        yield from (other for other in retold if fills_in(key, other.key) or fills_in(other.key, key))


class _Timeline:
    """Sights by their beginning."""

    def __init__(self, sights: Iterable[AlertInterval]) -> None:
        known = list(sights)
        self._dated = sorted((sight for sight in known if sight.until is not None), key=lambda sight: sight.starts_at)
        self._undated = [sight for sight in known if sight.until is None]
        self._starts = [sight.starts_at for sight in self._dated]
        self._latest = list(accumulate((sight.until or EVER for sight in self._dated), max))  # until when any so far was

    def between(self, begin: datetime | None, end: datetime | None) -> Iterator[AlertInterval]:
        """Yield what was at some time from `begin` to `end`, or at no known time; None: since or for ever."""
        yield from self._undated
        place = len(self._starts) if end is None else bisect_right(self._starts, end)
        while place and (begin is None or self._latest[place - 1] >= begin):
            place -= 1
            sight = self._dated[place]
            if begin is None or sight.until is None or sight.until >= begin:
                yield sight


def _beside(one: AlertInterval, others: _Timeline | None, within: timedelta) -> Iterable[AlertInterval]:
    """Return the others that were not further away in time than `within`."""
    if others is None:
        return ()
    if one.until is None:
        return others.between(None, None)
    return others.between(before(one.starts_at, within), after(one.until, within))


def _tied(first: AlertInterval, second: AlertInterval, tie: Tie) -> bool:
    """Tell whether two alerts may be linked by `tie`: by their times, and by those of its keys that both are named by."""
    ones, others = dict(first.key[2]), dict(second.key[2])
    in_time = (
        first.until is None
        or second.until is None
        or before(first.starts_at, tie.before) <= second.starts_at <= after(first.until, tie.after)
    )
    return in_time and all(_may_be_equal(ones.get(mine), others.get(theirs)) for mine, theirs in tie.by)


def _may_be_equal(one: str | None, other: str | None) -> bool:
    """Tell whether two values of a key may be equal: None is in no name, so it may be anything; "?" is known to be unknown."""
    unknown = any(value is not None and value.startswith("?") for value in (one, other))
    return not unknown and (one is None or other is None or one == other)


def before(at: datetime, by: timedelta) -> datetime:
    """Return the time `by` before `at`, the first there is at most."""
    return at - by if at - DAWN > by else DAWN


def after(at: datetime, by: timedelta) -> datetime:
    """Return the time `by` after `at`, the last there is at most."""
    return at + by if EVER - at > by else EVER
