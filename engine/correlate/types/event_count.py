"""event_count: a number of occurrences of rules in a window. A signature by itself is one that needs a single occurrence."""

from __future__ import annotations

from datetime import timedelta

from engine.correlate.asked import asked_rules_of
from engine.correlate.counted import condition, counted, counted_as
from engine.correlate.counts import Counts
from engine.correlate.episodes import Opening
from engine.correlate.keyed_state import KeyedState
from engine.correlate.measure import Measure
from engine.correlate.speakers import speakers_of
from engine.correlate.windows import CountCondition, Occurrences, Sliding
from engine.model.rules import Correlation, Plan, Signature

TYPE = "event_count"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type."""
    measure = Measure(_opening(condition(correlation), correlation.timespan_s))
    return Counts(correlation.rule, counted(correlation.rules, plan), measure, speakers_of(plan), asked_rules_of(plan))


def bare(signature: Signature, plan: Plan) -> KeyedState:
    """Return the empty state of a signature by itself: any match is an alert, which is over when its `clear` says so."""
    rule = signature.rule
    # whether it matters when each match was
    timed = bool(rule.clear.rules or rule.escalate or signature.collapse_s)
    measure = Measure(_opening(lambda count: count >= 1, 1.0), timed=timed, single=True)  # any second with a match in it
    return Counts(rule, (counted_as(signature),), measure, speakers_of(plan), asked_rules_of(plan))


def _opening(holds: CountCondition, timespan_s: float) -> Opening:
    return Sliding(Occurrences, holds, timedelta(seconds=timespan_s))
