"""Alerts become incidents: which is the root, which are symptoms, what is told.

Pure (DESIGN 4.4); state lives in the ledger.
"""

from engine.incident.decide import decide, minor
from engine.incident.group import group
from engine.incident.ledger import MemoryLedger

__all__ = ["MemoryLedger", "decide", "group", "minor"]
