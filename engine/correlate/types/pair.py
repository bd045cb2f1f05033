"""pair: something that opened is not followed in time by what has to follow."""

from __future__ import annotations

from engine.correlate.logic import Logic
from engine.correlate.pairs import Pairs
from engine.model.rules import Correlation, Plan

TYPE = "pair"


def logic(correlation: Correlation, plan: Plan) -> Logic:
    """Return the logic of a correlation of this type."""
    return Pairs(correlation)
