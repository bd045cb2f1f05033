"""Correlation: from matches and time to verdicts, one scope at a time. Pure; imports no other stage.

Its findings are a function of the set of items: any order, any split into batches and any restart gives the same.
"""

from engine.correlate.correlator import Correlator
from engine.correlate.state_cache import StateCache
from engine.correlate.stream import correlate

__all__ = ["Correlator", "StateCache", "correlate"]
