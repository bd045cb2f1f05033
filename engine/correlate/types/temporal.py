"""temporal: several rules seen in one window, in any order; all of them, or as many as the condition asks for."""

from __future__ import annotations

from datetime import timedelta

from engine.correlate.counted import condition, counted
from engine.correlate.counts import Counts
from engine.correlate.keyed_state import KeyedState
from engine.correlate.measure import Measure
from engine.correlate.speakers import speakers_of
from engine.correlate.windows import DistinctKinds, Sliding
from engine.model.rules import Correlation, Plan

TYPE = "temporal"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    holds = condition(correlation, least=len(set(correlation.rules)))
    opening = Sliding(lambda: DistinctKinds(lambda entry: entry.rule_id), holds, timedelta(seconds=correlation.timespan_s))
    return Counts(correlation.rule, counted(correlation.rules, plan), Measure(opening), speakers_of(plan))
