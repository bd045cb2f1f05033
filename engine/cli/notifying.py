"""The notifier beside the job: built from the configuration, on its own thread, with its own stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engine.clock import SteadyClock
from engine.config import Settings
from engine.deliver import DeliveryNotice, Notifier, Policy, on_a_thread
from engine.model.notifications import DeliveryState
from engine.model.rules import Plan
from engine.ports import Receiver, Say
from engine.store import Store

NOTIFY_MAX_AGE_S = 3600.0
GRACE_S = 30.0  # how long an attempt under way may take to end when a run stops


def build(store: Store, settings: Settings, plan: Plan, receivers: Mapping[str, Receiver], say: Say, once: bool) -> Notifier:
    """Return the notifier of a run; `once` counts waits as elapsed. Every failed attempt is told by `say`."""
    edits = frozenset(name for name, receiver in receivers.items() if receiver.edits)
    max_age_s = _max_age_s(settings, once)
    policy = Policy(settings.route, edits, explained(plan), once, settings.links, max_age_s, settings.fallbacks)

    def report(notice: DeliveryNotice) -> None:
        _report(notice, say)

    return Notifier(store, policy, receivers, SteadyClock(), report, begin=on_a_thread)


def explained(plan: Plan) -> frozenset[str]:
    """Return the rules that others explain: their incidents settle before they are told."""
    return frozenset(id_ for rule in plan.rules().values() for entry in rule.explains for id_ in entry.rules)


def _max_age_s(settings: Settings, once: bool) -> float:
    """Return the age from which incidents are told in a digest only; a run that ends is about the past: it has none."""
    if settings.notify_max_age_s is not None:
        return settings.notify_max_age_s
    return 0.0 if once else NOTIFY_MAX_AGE_S


@contextmanager
def running(notifier: Notifier, say: Say) -> Iterator[None]:
    """Let the notifier tell on a thread of its own while the body runs; an attempt under way is finished before the end."""
    stop = threading.Event()
    thread = threading.Thread(target=notifier.run, args=(stop, say), name="notifier", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        notifier.wake()
        thread.join(GRACE_S)


def drain(notifier: Notifier, say: Say) -> int:
    """Tell everything that there is to tell; return how many were told, and say what had to be left for the next run."""
    told = notifier.drain(time.sleep, say)
    if left := notifier.backlog():
        say(f"{left} could not be delivered yet; they stay in the outbox, and the next run goes on with them")
    return told


def _report(notice: DeliveryNotice, say: Say) -> None:
    entry, receipt = notice.entry, notice.receipt
    if receipt.state is not DeliveryState.DELIVERED:
        say(f"{entry.receiver} was not told of {entry.incident}: {receipt.state.value.replace('_', ' ')}, {receipt.why}")
