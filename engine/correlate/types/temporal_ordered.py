"""temporal_ordered: several rules seen one after the other in one window."""

from __future__ import annotations

from datetime import timedelta

from engine.correlate.asked import asked_rules_of
from engine.correlate.counted import counted
from engine.correlate.counts import Counts
from engine.correlate.keyed_state import KeyedState
from engine.correlate.measure import Measure
from engine.correlate.speakers import speakers_of
from engine.correlate.windows import Ordered
from engine.model.rules import Correlation, Plan

TYPE = "temporal_ordered"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    opening = Ordered(correlation.rules, timedelta(seconds=correlation.timespan_s))
    return Counts(correlation.rule, counted(correlation.rules, plan), Measure(opening), speakers_of(plan), asked_rules_of(plan))
