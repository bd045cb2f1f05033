"""What is read from the store at a scrape."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from engine.metrics.store import StoreCollector
from engine.model.notifications import Delivery, DeliveryState, Reason
from engine.model.statuses import JobStatus, StreamStatus
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import TOO_LARGE

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)


def values(store: Store) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the collected values by name and label values."""
    families = StoreCollector(store, {"checkpoint": lambda: 4096, "elsewhere": lambda: None}).collect()
    return {(sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples}


def test_incidents_and_deliveries_are_counted(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([TOO_LARGE])
    store.outbox().put(Delivery("ops", TOO_LARGE.id, 1, Reason.OPENED, NOON, NOON, DeliveryState.RETRY_LATER))
    store.statuses().put(JobStatus("it", "0.2.0", NOON, NOON, streams={"a.log": StreamStatus(newest=NOON, unread=7)}))
    collected = values(store)
    assert collected["tocsin_store_up", ()] == 1
    assert collected["tocsin_rule_incidents", (TOO_LARGE.rule,)] == 1
    assert collected["tocsin_stream_newest_timestamp_seconds", ("a.log",)] == NOON.timestamp()
    assert collected["tocsin_stream_unread", ("a.log",)] == 7
    assert {key: value for key, value in collected.items() if key[0] == "tocsin_state_bytes"} == {
        ("tocsin_state_bytes", ("checkpoint",)): 4096
    }
    assert collected["tocsin_incidents", (TOO_LARGE.status, TOO_LARGE.severity)] == 1
    assert collected["tocsin_outbox_entries", ("ops", "retry_later")] == 1
    assert collected["tocsin_not_evaluated", ()] == 0
    store.close()


def test_a_store_that_cannot_be_read_is_down_and_yields_nothing_else(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    store.close()
    (tmp_path / "tocsin.db").write_bytes(b"no database" * 1000)
    assert values(store) == {("tocsin_store_up", ()): 0}
