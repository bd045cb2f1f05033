"""The incident store: what the job decided, kept in SQL; the only owner of incident state."""

from engine.store.outbox import Outbox
from engine.store.search import STATES, Search
from engine.store.store import Store

__all__ = ["STATES", "Outbox", "Search", "Store"]
