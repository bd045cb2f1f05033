"""value_count: a number of distinct values of one capture in a window, however often each of them is seen."""

from __future__ import annotations

from datetime import timedelta

from engine.correlate.asked import asked_rules_of
from engine.correlate.counted import condition, counted
from engine.correlate.counts import Counts
from engine.correlate.keyed_state import KeyedState
from engine.correlate.measure import Measure
from engine.correlate.speakers import speakers_of
from engine.correlate.windows import DistinctValues, Sliding
from engine.model.rules import Correlation, Plan

TYPE = "value_count"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    opening = Sliding(DistinctValues, condition(correlation), timedelta(seconds=correlation.timespan_s))
    return Counts(
        correlation.rule,
        counted(correlation.rules, plan),
        Measure(opening, correlation.field),
        speakers_of(plan),
        asked_rules_of(plan),
    )
