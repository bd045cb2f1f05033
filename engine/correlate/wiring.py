"""How the rules of a plan depend on each other, computed once a plan: their order of evaluation, and who listens to whom.

A scope then makes the states of only those rules that have matches there: a plan has hundreds, most scopes need a few.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Protocol

from msgspec import Struct

from engine.correlate import types
from engine.correlate.keyed_state import KeyedState
from engine.correlate.types.event_count import bare
from engine.identity_cache import cached_by_identity
from engine.model.rules import Correlation, Plan


class CorrelationType(Protocol):
    """A module of `engine/correlate/types`."""

    TYPE: str
    state_of: Callable[[Correlation, Plan], KeyedState]


@cache
def correlation_types() -> Mapping[str, CorrelationType]:
    """Return every correlation type, by the name that rules use."""
    names = sorted(module.name for module in pkgutil.iter_modules(types.__path__))
    modules = (importlib.import_module(f"{types.__name__}.{name}") for name in names)
    return {module.TYPE: module for module in modules}


class Wiring(Struct, frozen=True):
    """The data that the correlators of all scopes share.

    Attributes:
        makers: make the empty state of each rule, in the order of evaluation: those that others count come first.
        listeners: by rule, the rules that take its matches.
        counted_on: the correlations whose alerts others count.
        followers: the rules that are evaluated whenever a source has moved.
    """

    makers: Mapping[str, Callable[[], KeyedState]]
    listeners: Mapping[str, tuple[str, ...]]
    counted_on: frozenset[str]
    followers: frozenset[str]


@cached_by_identity
def wiring_of(plan: Plan) -> Wiring:
    """Return the wiring of `plan`. Raises ValueError for a correlation that cannot be made."""
    makers = {signature.rule.id: partial(bare, signature, plan) for signature in plan.signatures} | _correlations(plan)
    states = {rule_id: maker() for rule_id, maker in makers.items()}
    ordered = list(_ordered(states, {correlation.rule.id for correlation in plan.correlations}))
    listeners: dict[str, list[str]] = {}
    for rule_id in ordered:
        for listened in sorted(states[rule_id].listens):
            listeners.setdefault(listened, []).append(rule_id)
    return Wiring(
        {rule_id: makers[rule_id] for rule_id in ordered},
        {listened: tuple(rule_ids) for listened, rule_ids in listeners.items()},
        frozenset(correlation.rule.id for correlation in plan.correlations if correlation.rule.id in listeners),
        frozenset(rule_id for rule_id, state in states.items() if state.follows_clocks),
    )


def _correlations(plan: Plan) -> dict[str, Callable[[], KeyedState]]:
    by_name = correlation_types()
    return {
        correlation.rule.id: partial(by_name[correlation.type].state_of, correlation, plan) for correlation in plan.correlations
    }


def _ordered(states: Mapping[str, KeyedState], correlations: set[str]) -> Iterator[str]:
    """Yield the rules of `states`, those that others count before them."""
    yield from (rule_id for rule_id in states if rule_id not in correlations)
    waiting = [rule_id for rule_id in states if rule_id in correlations]
    while waiting:
        ready = [rule_id for rule_id in waiting if not states[rule_id].listens & set(waiting)]
        for rule_id in ready or list(waiting):  # a cycle, which no compiled plan has, is taken in the order of the plan
            waiting.remove(rule_id)
            yield rule_id
