"""How the logics of a plan hang together, found once a plan: which there are, in what order they are asked, who tells whom.

A scope then makes only the logics that it has something for: a plan has hundreds, most scopes need a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from engine.correlate.logic import Logic, correlation_types
from engine.correlate.types.event_count import bare
from engine.identity_cache import remembered
from engine.model.rules import Plan


class Wiring(Struct, frozen=True):
    """What the correlators of all scopes share.

    `makers` make the logic of each rule, in the order in which they are asked: those that others count on before them.
    `listeners` are the rules that are told of the matches of a rule, `counted_on` the correlations whose alerts others count,
    `followers` the rules that are asked whenever a source has moved.
    """

    makers: Mapping[str, Callable[[], Logic]]
    listeners: Mapping[str, tuple[str, ...]]
    counted_on: frozenset[str]
    followers: frozenset[str]


@remembered
def wiring_of(plan: Plan) -> Wiring:
    """Return the wiring of `plan`. Raises ValueError for a correlation that cannot be made."""
    makers = {each.rule.id: partial(bare, each, plan) for each in plan.signatures} | _correlations(plan)
    logics = {rule_id: maker() for rule_id, maker in makers.items()}
    ordered = list(_ordered(logics, {each.rule.id for each in plan.correlations}))
    listeners: dict[str, list[str]] = {}
    for rule_id in ordered:
        for listened in sorted(logics[rule_id].listens):
            listeners.setdefault(listened, []).append(rule_id)
    return Wiring(
        {rule_id: makers[rule_id] for rule_id in ordered},
        {listened: tuple(told) for listened, told in listeners.items()},
        frozenset(each.rule.id for each in plan.correlations if each.rule.id in listeners),
        frozenset(rule_id for rule_id, logic in logics.items() if logic.follows_clocks),
    )


def _correlations(plan: Plan) -> dict[str, Callable[[], Logic]]:
    types = correlation_types()
    return {each.rule.id: partial(types[each.type].logic, each, plan) for each in plan.correlations}


def _ordered(logics: Mapping[str, Logic], correlations: set[str]) -> Iterator[str]:
    """Yield the rules of `logics`, those that others count on before them."""
    yield from (rule_id for rule_id in logics if rule_id not in correlations)
    waiting = [rule_id for rule_id in logics if rule_id in correlations]
    while waiting:
        ready = [rule_id for rule_id in waiting if not logics[rule_id].listens & set(waiting)]
        for rule_id in ready or list(waiting):  # a circle, which no compiled plan has, is taken as it comes
            waiting.remove(rule_id)
            yield rule_id
