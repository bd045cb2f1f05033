"""Which rules' alerts may become one incident: what happens to others changes nothing for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.model.rules import Plan, Rule


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


def _linked(rule: Rule) -> Iterator[str]:
    for entry in rule.explains:
        yield from entry.rules
    yield from (entry.rule for entry in rule.continues)
