"""The metrics that are read from the store at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine.errors import StoreError
from engine.store import Store


class StoreCollector(Collector):
    """Yields how many incidents, deliveries and gaps a store has, what the job stored of its streams, and what the state takes;
    only `tocsin_store_up 0` while the store cannot be read.

    Args:
        sizes: by part of the state, a function that returns its size in bytes; None when it cannot be seen from here.
    """

    def __init__(self, store: Store, sizes: Mapping[str, Callable[[], int | None]] | None = None) -> None:
        self._store, self._sizes = store, sizes or {}

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: the names are known, and the store need not be read for a registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the families as of now."""
        up = GaugeMetricFamily("tocsin_store_up", "1 while the store can be read, else 0.")
        try:
            families = list(self._read())
        except StoreError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from families

    def _read(self) -> Iterator[Metric]:
        incidents = GaugeMetricFamily("tocsin_incidents", "Incidents in the store.", labels=["status", "severity"])
        for (status, severity), count in self._store.incident_counts().items():
            incidents.add_metric([status, severity], count)
        yield incidents
        outbox = GaugeMetricFamily("tocsin_outbox_entries", "Deliveries by their state.", labels=["receiver", "state"])
        for (receiver, state), count in self._store.outbox().counts().items():
            outbox.add_metric([receiver, state], count)
        yield outbox
        rules = GaugeMetricFamily("tocsin_rule_incidents", "Incidents in the store by rule.", labels=["rule"])
        for rule, count in self._store.rule_counts().items():
            rules.add_metric([rule], count)
        yield rules
        yield from self._of_streams()
        sizes = GaugeMetricFamily("tocsin_state_bytes", "What the state of the run takes on disk.", labels=["part"])
        for part, size in self._sizes.items():
            if (size_bytes := size()) is not None:
                sizes.add_metric([part], size_bytes)
        yield sizes
        yield GaugeMetricFamily("tocsin_not_evaluated", "What is not evaluated.", value=len(self._store.blinds()))

    def _of_streams(self) -> Iterator[Metric]:
        newest = GaugeMetricFamily(
            "tocsin_stream_newest_timestamp_seconds", "The newest event time of a stream.", labels=["stream"]
        )
        unread = GaugeMetricFamily("tocsin_stream_unread", "What a stream has unread: bytes or records.", labels=["stream"])
        job = self._store.statuses().job()
        for name, status in ({} if job is None else job.streams).items():
            if status.newest is not None:
                newest.add_metric([name], status.newest.timestamp())
            unread.add_metric([name], status.unread)
        yield from (newest, unread)
