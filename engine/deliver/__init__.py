"""The notifier: fills the outbox from the store, on its own clock, and sends. No batch of the job makes a network call."""

from engine.deliver.dispatch import DeliveryNotice
from engine.deliver.in_flight import on_a_thread
from engine.deliver.leading import NotifierStandby
from engine.deliver.notifier import Notifier
from engine.deliver.pacing import Pace
from engine.deliver.planning import AuditNotice, Policy, plan_delivery
from engine.deliver.receipts import delivered, presentable

__all__ = [
    "AuditNotice",
    "DeliveryNotice",
    "Notifier",
    "NotifierStandby",
    "Pace",
    "Policy",
    "delivered",
    "on_a_thread",
    "plan_delivery",
    "presentable",
]
