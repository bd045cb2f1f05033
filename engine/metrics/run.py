"""The Prometheus metrics of a run (names and units: docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector, generate_latest

from engine.metrics.store import StoreCollector
from engine.model.notifications import Delivery, DeliveryState
from engine.model.quarantine import DeadLetter
from engine.store import Store

_BATCH_S = (0.1, 0.2, 0.35, 0.5, 1, 2, 5, 10, 30, 60, 300)
MOST_STREAMS = 500  # that have a series of their own: containers come and go
OTHER_STREAMS = "(others)"
_DELAY_S = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)


class RunMetrics:
    """Counts what a run reads, decides and delivers. Every method may be called from any thread.

    Args:
        now: the clock, by which the time to a delivery is measured.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._streams: set[str] = set()
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._lines = Counter("tocsin_lines", "Lines that were read.", ["stream"], registry=registry)
        self._bytes = Counter("tocsin_read_bytes", "Bytes that were read.", ["stream"], registry=registry)
        self._events = Counter("tocsin_events", "Events that were read to their end.", registry=registry)
        self._matches = Counter("tocsin_rule_matches", "Events that a rule matched.", ["rule"], registry=registry)
        self._late = Counter("tocsin_late_lines", "Lines that came almost too late to be read.", ["stream"], registry=registry)
        self._batches = Counter("tocsin_batches", "Batches whose findings are stored.", registry=registry)
        self._batch_s = Histogram(
            "tocsin_batch_seconds",
            "Time from the start of a trigger to its end, planning and reading included.",
            buckets=_BATCH_S,
            registry=registry,
        )
        self._last_batch = Gauge("tocsin_last_batch_timestamp_seconds", "When the last batch was stored.", registry=registry)
        self._changes = Counter("tocsin_incident_changes", "Incidents that a batch opened or changed.", registry=registry)
        self._dead_letters = Counter("tocsin_dead_letters", "Input that a stage failed on.", ["stage"], registry=registry)
        self._lost = Counter("tocsin_lost_ranges", "Ranges of input that were gone before they were read.", registry=registry)
        self._attempts = Counter(
            "tocsin_notification_attempts",
            "Finished attempts to notify a receiver.",
            ["receiver", "reason", "outcome"],
            registry=registry,
        )
        self._delay_s = Histogram(
            "tocsin_notification_delay_seconds",
            "Time from the moment a notification was wanted to its delivery.",
            ["receiver"],
            buckets=_DELAY_S,
            registry=registry,
        )
        self._line_s = Histogram(
            "tocsin_line_to_delivery_seconds",
            "Time from the first line of an incident to the delivery of the message that it opened.",
            ["receiver"],
            buckets=_DELAY_S,
            registry=registry,
        )

    def collect_from(self, store: Store, sizes: Mapping[str, Callable[[], int | None]] | None = None) -> None:
        """Add what is read from `store` at each scrape, and the `sizes` of the state (see StoreCollector)."""
        self._registry.register(StoreCollector(store, sizes))

    def read(self, stream: str, lines: int, size: int) -> None:
        """Count the lines and bytes that a batch read from a stream; streams beyond MOST_STREAMS together."""
        label = self._label_of(stream)
        self._lines.labels(label).inc(lines)
        self._bytes.labels(label).inc(size)

    def _label_of(self, stream: str) -> str:
        if stream not in self._streams and len(self._streams) >= MOST_STREAMS:
            stream = OTHER_STREAMS
        self._streams.add(stream)
        return stream

    def add_counts(self, events: int, matches: Mapping[str, int], late: Mapping[str, int]) -> None:
        """Count the events of a batch, its matches by rule, and by stream the lines that came almost too late to be read."""
        self._events.inc(events)
        for rule, number in matches.items():
            self._matches.labels(rule).inc(number)
        for stream, lines in late.items():
            self._late.labels(self._label_of(stream)).inc(lines)

    def stored(self, incidents: int, letters: Iterable[DeadLetter], losses: int) -> None:
        """Count a stored batch: incidents with a new revision, dead letters, and ranges of input that were lost."""
        self._batches.inc()
        self._last_batch.set(self._now().timestamp())
        self._changes.inc(incidents)
        self._lost.inc(losses)
        for letter in letters:
            self._dead_letters.labels(letter.stage).inc()

    def triggered(self, seconds: float) -> None:
        """Take the duration of a trigger."""
        self._batch_s.observe(seconds)

    def attempted(self, entry: Delivery, outcome: DeliveryState) -> None:
        """Count a finished attempt; a delivery also with its delay."""
        self._attempts.labels(entry.receiver, entry.reason.value, outcome.value).inc()
        if outcome is DeliveryState.DELIVERED:
            self._delay_s.labels(entry.receiver).observe(max((self._now() - entry.known_at).total_seconds(), 0.0))

    def told(self, receiver: str, first_line_at: datetime) -> None:
        """Take the delivery of the message that an incident opened, and when the first line of the incident was written."""
        self._line_s.labels(receiver).observe(max((self._now() - first_line_at).total_seconds(), 0.0))

    def exposition(self) -> bytes:
        """Return all metrics in the text format of Prometheus 0.0.4."""
        return generate_latest(self._registry)
