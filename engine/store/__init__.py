"""The incident store: what the job decided, kept in SQL; the only owner of incident state (DESIGN 2)."""

from engine.store.store import Store
from engine.store.telling import Told, reason_to_tell

__all__ = ["Store", "Told", "reason_to_tell"]
