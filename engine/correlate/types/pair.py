"""pair: a match of `open` is not followed in time by a match of `expect`."""

from __future__ import annotations

from engine.correlate.counted import counted
from engine.correlate.keyed_state import KeyedState
from engine.correlate.pairs import Pairs
from engine.model.rules import Correlation, Plan

TYPE = "pair"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    opens = counted(correlation.rules, plan)
    states = (*correlation.rule.not_during, *(state for of_rule in opens for state in of_rule.not_during))
    return Pairs(correlation, states)
