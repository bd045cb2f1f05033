"""From alerts to incidents: which alert is the root, which are symptoms, and the text of the incident.

Pure; state lives in the ledger.
"""

from engine.incident.decide import NOT_JUDGED, decide, minor
from engine.incident.group import group, regroup
from engine.incident.ledger import MemoryLedger

__all__ = ["NOT_JUDGED", "MemoryLedger", "decide", "group", "minor", "regroup"]
