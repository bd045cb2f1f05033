"""Which alerts may be linked with one another: a change to any other alert changes nothing for them. Pure.

Decided from time intervals and keys alone, so it is less strict than engine/incident/links.py: alerts that are linked there are
never unlinked here. tests/unit/incident/test_affected.py compares the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import accumulate

from engine.incident.link_table import LinkTable, RuleLink, earlier, later
from engine.incident.links import fills_in, is_vague
from engine.model.incidents import DAWN, EVER, AlertInterval, AlertKey, Incident, extent

_NONE = timedelta()


def affected_since(intervals: Iterable[AlertInterval], incidents: Iterable[Incident], table: LinkTable) -> datetime:
    """Return the earliest time of anything that may be linked with these alerts or incidents.

    It is DAWN when one of them has no known time, and EVER when there are none.
    """
    starts = (
        earlier(interval.starts_at, table.reach.get(interval.key[1], _NONE)) if interval.until else DAWN
        for interval in intervals
    )
    extents = ((extent(incident), incident.alerts) for incident in incidents)
    begins = ((when[0] if when else DAWN, table.reopen.get(key[1], _NONE)) for when, keys in extents for key in keys)
    return min((*starts, *(earlier(at, window) for at, window in begins)), default=EVER)


class AffectedAlerts:
    """The alerts of one scope, as time intervals, and which of them may be linked."""

    def __init__(self, intervals: Iterable[AlertInterval], table: LinkTable) -> None:
        of_key: dict[AlertKey, list[AlertInterval]] = defaultdict(list)
        of_rule: dict[str, list[AlertInterval]] = defaultdict(list)
        vague: dict[str, list[AlertInterval]] = defaultdict(list)
        for interval in intervals:
            of_key[interval.key].append(interval)
            of_rule[interval.key[1]].append(interval)
            if is_vague(interval.key):
                vague[interval.key[1]].append(interval)
        self._table = table
        self._of_key = {key: _Timeline(group) for key, group in of_key.items()}
        self._of_rule = {rule_id: _Timeline(group) for rule_id, group in of_rule.items()}
        self._vague = {rule_id: _Timeline(group) for rule_id, group in vague.items()}

    def around(self, seeds: Iterable[AlertInterval]) -> set[AlertInterval]:
        """Return `seeds` and all alerts that may be linked with one of them, directly or through others."""
        reached = set(seeds)
        waiting = list(reached)
        while waiting:
            fresh = set(self._linkable(waiting.pop())) - reached
            reached |= fresh
            waiting += fresh
        return reached

    def of_incident(self, incident: Incident) -> Iterator[AlertInterval]:
        """Yield the alerts that `incident` may consist of: those of its keys, in its time or within `reopen_window` of it."""
        when = extent(incident)
        for key in incident.alerts:
            window = self._table.reopen.get(key[1], _NONE)
            if key in self._of_key:
                begin, end = (earlier(when[0], window), later(when[1], window)) if when else (None, None)
                yield from self._of_key[key].between(begin, end)

    def _linkable(self, alert: AlertInterval) -> Iterator[AlertInterval]:
        key, rule_id = alert.key, alert.key[1]
        yield from _beside(alert, self._of_key.get(key), self._table.reopen.get(rule_id, _NONE))
        for link in self._table.outward.get(rule_id, ()):
            others = _beside(alert, self._of_rule.get(link.second), max(link.before, link.after))
            yield from (other for other in others if _may_be_linked(alert, other, link))
        for link in self._table.inward.get(rule_id, ()):
            others = _beside(alert, self._of_rule.get(link.first), max(link.before, link.after))
            yield from (other for other in others if _may_be_linked(other, alert, link))
        repeated = _beside(alert, (self._of_rule if is_vague(key) else self._vague).get(rule_id), _NONE)
        yield from (other for other in repeated if fills_in(key, other.key) or fills_in(other.key, key))


class _Timeline:
    """Alerts in order of their start."""

    def __init__(self, intervals: Iterable[AlertInterval]) -> None:
        every = list(intervals)
        self._dated = sorted(
            (interval for interval in every if interval.until is not None), key=lambda interval: interval.starts_at
        )
        self._undated = [interval for interval in every if interval.until is None]
        self._starts = [interval.starts_at for interval in self._dated]
        self._latest = list(accumulate((interval.until or EVER for interval in self._dated), max))  # end of any up to here

    def between(self, begin: datetime | None, end: datetime | None) -> Iterator[AlertInterval]:
        """Yield the alerts that overlap [`begin`, `end`] or have no known time; None leaves that side open."""
        yield from self._undated
        position = len(self._starts) if end is None else bisect_right(self._starts, end)
        while position and (begin is None or self._latest[position - 1] >= begin):
            position -= 1
            interval = self._dated[position]
            if begin is None or interval.until is None or interval.until >= begin:
                yield interval


def _beside(alert: AlertInterval, others: _Timeline | None, within: timedelta) -> Iterable[AlertInterval]:
    """Return the others that are at most `within` away in time."""
    if others is None:
        return ()
    if alert.until is None:
        return others.between(None, None)
    return others.between(earlier(alert.starts_at, within), later(alert.until, within))


def _may_be_linked(first: AlertInterval, second: AlertInterval, link: RuleLink) -> bool:
    """Return whether two alerts may be linked by `link`: by their times, and by the keys that both entities have."""
    firsts, seconds = dict(first.key[2]), dict(second.key[2])
    in_time = (
        first.until is None
        or second.until is None
        or earlier(first.starts_at, link.before) <= second.starts_at <= later(first.until, link.after)
    )
    return in_time and all(_may_be_equal(firsts.get(own), seconds.get(theirs)) for own, theirs in link.by)


def _may_be_equal(value: str | None, other: str | None) -> bool:
    """Return whether two values of a key may be equal.

    None means that the alert has no such value, so a capture may have any. A placeholder (`?...`) equals nothing.
    """
    missing = any(text is not None and text.startswith("?") for text in (value, other))
    return not missing and (value is None or other is None or value == other)
