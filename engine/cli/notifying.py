"""Build the notifier from the configuration and run it on a thread beside the job."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from engine.cli.monitoring import Monitoring
from engine.cli.report import render_incident
from engine.cli.surveying import terms_of
from engine.cli.terminal import show
from engine.clock import SteadyClock
from engine.config import Settings
from engine.deliver import AuditNotice, DeliveryNotice, Notifier, NotifierStandby, Policy, on_a_thread
from engine.language import words_of
from engine.model.notifications import DeliveryState, Notification, Reason
from engine.ports import Receiver, Say
from engine.store import Store

NOTIFY_MAX_AGE_S = 3600.0
GRACE_S = 30.0  # how long a delivery in flight may take to end when a run stops


def build(
    store: Store, settings: Settings, receivers: Mapping[str, Receiver], say: Say, once: bool, monitoring: Monitoring
) -> NotifierStandby:
    """Return the notifier of a run, which sends while no other one does.

    Args:
        say: takes a sentence about every failed attempt.
        once: the run is bounded: the waits of routes count as elapsed.
    """
    policy = policy_of(settings, receivers, once)

    def report(notice: DeliveryNotice) -> None:
        monitoring.attempted(notice)
        _report(notice, say)

    def make(store: Store, leads: Callable[[], bool]) -> Notifier:
        return Notifier(store, policy, receivers, SteadyClock(), report, begin=on_a_thread, leads=leads)

    return NotifierStandby(store, make, monitoring.notifier_works, monitoring.notifier_stepped)


def policy_of(settings: Settings, receivers: Mapping[str, Receiver], once: bool) -> Policy:
    """Return the policy of a configuration with these open receivers (see build)."""
    edit_capable = frozenset(name for name, receiver in receivers.items() if receiver.edits)
    max_age_s = _max_age_s(settings, once)
    records = frozenset(name for name, receiver in receivers.items() if receiver.records)
    return Policy(
        settings.route,
        edit_capable,
        frozenset(),  # the rules of the job are in the store
        once,
        settings.links,
        max_age_s,
        settings.fallbacks,
        records,
        frozenset(name for name, receiver in receivers.items() if receiver.gathers),
        settings.notify_storm,
        {name: words_of(language) for name, language in settings.languages.items()},
        audit=AuditNotice(*settings.audit_digest, terms_of(settings)) if settings.audit_digest is not None else None,
    )


def _max_age_s(settings: Settings, once: bool) -> float:
    """Return the age in seconds from which incidents go into a digest only; 0 for no such age, as in a bounded run, which reads
    the past."""
    if settings.notify_max_age_s is not None:
        return settings.notify_max_age_s
    return 0.0 if once else NOTIFY_MAX_AGE_S


@contextmanager
def running_notifier(notifier: NotifierStandby, say: Say) -> Iterator[None]:
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


def show_notification(notification: Notification, say: Say) -> None:
    """Print a notification for the receiver `terminal`; `say` takes what is news about an incident that was printed before."""
    if notification.reason not in (Reason.OPENED, Reason.BACKFILL, Reason.DIGEST):
        say(f"{notification.incident.id} {notification.reason.value.replace('_', ' ')}: {notification.news}")
    show(lambda width: render_incident(notification.incident, width, notification.links).append("\n"))
    sys.stdout.flush()


def drain(notifier: NotifierStandby, wait: Callable[[float], object], say: Say) -> int:
    """Send all notifications that are waiting; return how many were sent, and report how many are left for the next run.

    Args:
        wait: waits for a number of seconds; a true result means that a stop was requested, which ends it.

    Raises StoreAway when a stop ends the wait for a store that is away.
    """
    sent, waiting = notifier.drain(wait, say)
    if waiting:
        say(f"{waiting} could not be delivered yet; they stay in the outbox, and the next run goes on with them")
    return sent


def _report(notice: DeliveryNotice, say: Say) -> None:
    entry, receipt = notice.entry, notice.receipt
    if receipt.state is not DeliveryState.DELIVERED:
        say(f"{entry.receiver} was not told of {entry.incident}: {receipt.state.value.replace('_', ' ')}, {receipt.why}")
