"""Correlation: from matches and time to verdicts, one scope at a time. Pure; knows no other stage.

What it says is a function of the set of what was read: any order, any cutting into batches, any restart gives the same.
"""

from engine.correlate.correlator import Correlator
from engine.correlate.state_cache import StateCache
from engine.correlate.stream import correlate

__all__ = ["Correlator", "StateCache", "correlate"]
