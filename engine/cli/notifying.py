"""Build the notifier from the configuration and run it on a thread beside the job."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engine.cli.monitoring import Monitoring
from engine.clock import SteadyClock
from engine.config import Settings
from engine.deliver import DeliveryNotice, Notifier, Policy, on_a_thread
from engine.model.notifications import DeliveryState
from engine.model.rules import Plan
from engine.ports import Receiver, Say
from engine.store import Store

NOTIFY_MAX_AGE_S = 3600.0
GRACE_S = 30.0  # how long a delivery in flight may take to end when a run stops


def build(
    store: Store,
    settings: Settings,
    plan: Plan,
    receivers: Mapping[str, Receiver],
    say: Say,
    once: bool,
    monitoring: Monitoring,
) -> Notifier:
    """Return the notifier of a run.

    Args:
        say: takes a sentence about every failed attempt.
        once: the run is bounded: the waits of routes count as elapsed.
    """

    def report(notice: DeliveryNotice) -> None:
        monitoring.attempted(notice)
        _report(notice, say)

    clock, on_step = SteadyClock(), monitoring.notifier_stepped
    policy = policy_of(settings, plan, receivers, once)
    return Notifier(store, policy, receivers, clock, report, begin=on_a_thread, on_step=on_step)


def policy_of(settings: Settings, plan: Plan, receivers: Mapping[str, Receiver], once: bool) -> Policy:
    """Return the policy of a configuration with these open receivers (see build)."""
    edit_capable = frozenset(name for name, receiver in receivers.items() if receiver.edits)
    max_age_s = _max_age_s(settings, once)
    records = frozenset(name for name, receiver in receivers.items() if receiver.records)
    return Policy(
        settings.route, edit_capable, explained_rules(plan), once, settings.links, max_age_s, settings.fallbacks, records
    )


def explained_rules(plan: Plan) -> frozenset[str]:
    """Return the ids of the rules that other rules explain: their incidents wait for a cause before they are notified."""
    return frozenset(id_ for rule in plan.rules().values() for entry in rule.explains for id_ in entry.rules)


def _max_age_s(settings: Settings, once: bool) -> float:
    """Return the age in seconds from which incidents go into a digest only; 0 for no such age, as in a bounded run, which reads
    the past."""
    if settings.notify_max_age_s is not None:
        return settings.notify_max_age_s
    return 0.0 if once else NOTIFY_MAX_AGE_S


@contextmanager
def running_notifier(notifier: Notifier, say: Say) -> Iterator[None]:
    """Run the notifier on a thread of its own while the body runs; at the end wait up to GRACE_S for a delivery in flight."""
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
    """Send all notifications that are waiting; return how many were sent, and report how many are left for the next run."""
    sent = notifier.drain(time.sleep, say)
    if waiting := notifier.backlog():
        say(f"{waiting} could not be delivered yet; they stay in the outbox, and the next run goes on with them")
    return sent


def _report(notice: DeliveryNotice, say: Say) -> None:
    entry, receipt = notice.entry, notice.receipt
    if receipt.state is not DeliveryState.DELIVERED:
        say(f"{entry.receiver} was not told of {entry.incident}: {receipt.state.value.replace('_', ' ')}, {receipt.why}")
