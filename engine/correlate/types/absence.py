"""absence: something expected is missing, be it a member of a component or the matches of a signature."""

from __future__ import annotations

from engine.correlate.keyed_state import KeyedState
from engine.correlate.members import MemberSilence
from engine.correlate.pauses import Pauses
from engine.correlate.speakers import speakers_of
from engine.model.rules import Correlation, Plan

TYPE = "absence"


def state_of(correlation: Correlation, plan: Plan) -> KeyedState:
    """Return the empty state of a correlation of this type. Raises ValueError when it has no `of`."""
    absence = correlation.absence
    if absence is None:
        raise ValueError(f"{correlation.rule.id}: an absence needs `of`")
    component = next((component for component in plan.components if component.name == absence.of), None)
    if component is None:
        return Pauses(correlation, absence.of, absence.timespan_s or correlation.timespan_s)
    return MemberSilence(correlation.rule, absence, component, speakers_of(plan))
