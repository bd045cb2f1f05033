"""The metrics that are read from the store at each scrape."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine.errors import StoreError
from engine.store import Store


class StoreCollector(Collector):
    """Yields how many incidents, deliveries and gaps a store has; only `tocsin_store_up 0` while it cannot be read."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        yield GaugeMetricFamily("tocsin_not_evaluated", "What is not evaluated.", value=len(self._store.blinds()))
