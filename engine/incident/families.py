"""Which alerts may become one incident, by rule and by time: what happens to others changes nothing for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from engine.model.incidents import Span
from engine.model.rules import Plan, Rule
from engine.remembered import remembered


@remembered
def families(plan: Plan) -> Mapping[str, frozenset[str]]:
    """Return, for every rule, the rules that it is linked with by `explains` and `continues`, directly or not; itself too."""
    family: dict[str, set[str]] = {}
    for rule in plan.rules().values():
        joined = {rule.id}.union(*(family.get(name, {name}) for name in (rule.id, *_linked(rule))))
        family.update(dict.fromkeys(joined, joined))
    return {name: frozenset(members) for name, members in family.items()}


def relatives(touched: Iterable[str], known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the members of the families of `touched`; a rule that is not known is one by itself."""
    return frozenset[str]().union(*(known.get(name, frozenset((name,))) for name in touched))


def reach(rules: Iterable[Rule]) -> timedelta:
    """Return the longest time that any of `rules` links two alerts over."""
    return timedelta(seconds=max((seconds for rule in rules for seconds in _windows(rule)), default=0.0))


def beginning(spans: Iterable[Span], touched: datetime, within: timedelta) -> datetime:
    """Return since when alerts may be linked with what happened at `touched` or later, directly or through others: before that
    there is nothing for longer than `within`."""
    begin = touched
    for start, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if begin - end > within:
            break
        begin = min(begin, start)
    return begin


def _windows(rule: Rule) -> Iterator[float]:
    yield rule.reopen_window_s
    for entry in rule.explains:
        yield from (entry.before_s, entry.after_s)
    yield from (entry.within_s for entry in rule.continues)


def _linked(rule: Rule) -> Iterator[str]:
    for entry in rule.explains:
        yield from entry.rules
    yield from (entry.rule for entry in rule.continues)
