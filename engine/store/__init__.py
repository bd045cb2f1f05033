"""The incident store: alerts, incidents and deliveries in SQL. The only owner of incident state."""

from engine.store.outbox import Outbox
from engine.store.search import STATES, Search
from engine.store.store import Store

__all__ = ["STATES", "Outbox", "Search", "Store"]
