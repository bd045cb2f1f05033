"""increase: a captured number, such as the generation of a group, rises in a window, whether or not lines were lost."""

from __future__ import annotations

from datetime import timedelta

from engine.correlate.counted import condition, counted
from engine.correlate.counts import Counts
from engine.correlate.keyed_state import KeyedState
from engine.correlate.measure import Measure
from engine.correlate.speakers import speakers_of
from engine.correlate.windows import Rise, Sliding
from engine.model.rules import Correlation, Plan

TYPE = "increase"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    field, timespan = correlation.field, timedelta(seconds=correlation.timespan_s)
    opening = Sliding(lambda: Rise(field), condition(correlation), timespan)
    return Counts(correlation.rule, counted(correlation.rules, plan), Measure(opening, field), speakers_of(plan))
