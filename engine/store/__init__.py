"""The incident store: alerts, incidents and deliveries in SQL. The only owner of incident state."""

from engine.store.outbox import Outbox
from engine.store.store import Store

__all__ = ["Outbox", "Store"]
