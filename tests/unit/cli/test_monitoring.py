"""Metrics, health and heartbeats beside a run, as its configuration asks."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from engine.cli.monitoring import Monitoring
from engine.config import load
from engine.deliver import DeliveryNotice
from engine.model.notifications import Delivery, DeliveryState, Reason, Receipt
from engine.spark.job import BatchReport
from engine.spark.rows import BatchCounts
from engine.spark.slices import Scanned
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, TOO_LARGE

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\n"


def opened(folder: Path, text: str) -> tuple[Monitoring, Store]:
    (folder / "tocsin.yml").write_text(text)
    settings = load(folder / "tocsin.yml")
    store = Store.open(settings.store)
    return Monitoring(settings, store), store


def test_a_run_serves_what_it_counted(tmp_path: Path) -> None:
    monitoring, store = opened(tmp_path, CONFIG + "metrics: {listen: '127.0.0.1:0'}\n")
    sentences: list[str] = []
    counts = BatchCounts(5, {"broker-started": 2}, {"logs-*": 3})
    report = BatchReport(3, 7, 1, is_stored=True, amounts=[Scanned("a.log", 7, 700)], counts=counts)
    with monitoring.running(sentences.append):
        monitoring.batch_reported(report)
        monitoring.triggered(0.2)
        address = sentences[0].split()[5].removesuffix("metrics,")
        with urlopen(f"{address}metrics") as answer:
            text = answer.read().decode()
        with urlopen(f"{address}readyz") as answer:
            assert answer.read() == b"ok\n"
    assert 'tocsin_lines_total{stream="a.log"} 7.0' in text
    assert "tocsin_events_total 5.0" in text
    assert 'tocsin_rule_matches_total{rule="broker-started"} 2.0' in text
    assert 'tocsin_late_lines_total{stream="logs-*"} 3.0' in text
    job = store.statuses().job()
    assert job is not None
    assert job.matches == {"broker-started": 2}
    assert "tocsin_batches_total 1.0" in text
    assert "tocsin_store_up 1.0" in text
    store.close()


def test_the_message_that_an_incident_opened_is_timed_from_its_first_line(tmp_path: Path) -> None:
    monitoring, store = opened(tmp_path, CONFIG + "metrics: {}\n")
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([TOO_LARGE])
    for incident, reason in ((TOO_LARGE.id, Reason.OPENED), (TOO_LARGE.id, Reason.RESOLVED), ("inc-gone", Reason.OPENED)):
        entry = Delivery("ops", incident, 1, reason, AT, AT, DeliveryState.DELIVERED)
        monitoring.attempted(DeliveryNotice(entry, Receipt(DeliveryState.DELIVERED)))
    text = monitoring.exposition().decode()
    assert 'tocsin_line_to_delivery_seconds_count{receiver="ops"} 1.0' in text
    assert 'tocsin_state_bytes{part="store"}' in text
    store.close()


def test_a_report_of_a_batch_that_is_not_stored_counts_nothing(tmp_path: Path) -> None:
    monitoring, store = opened(tmp_path, CONFIG + "metrics: {}\n")
    monitoring.batch_reported(BatchReport(3, 7, 1, ("the store is locked",)))
    assert b"tocsin_batches_total 0.0" in monitoring.exposition()
    store.close()


def test_without_the_sections_nothing_is_served(tmp_path: Path) -> None:
    monitoring, store = opened(tmp_path, CONFIG)
    sentences: list[str] = []
    with monitoring.running(sentences.append):
        monitoring.batch_reported(BatchReport(3, 7, 1, is_stored=True))
    assert sentences == []
    store.close()


def test_health_is_served_before_the_store_is_open_and_waiting_for_it_is_a_sign_of_life(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text(CONFIG + "metrics: {listen: '127.0.0.1:0'}\n")
    settings = load(tmp_path / "tocsin.yml")
    monitoring, sentences, stop = Monitoring(settings), list[str](), threading.Event()
    with monitoring.running(sentences.append):
        address = sentences[0].split()[5].removesuffix("metrics,")
        with urlopen(f"{address}healthz") as answer:
            assert answer.read() == b"ok\n"
        with pytest.raises(HTTPError, match="503") as unready:
            urlopen(f"{address}readyz")
        assert b"the incident store is not open yet" in unready.value.read()
        before = monitoring._health._job_s, monitoring._health._notifier_s
        assert not monitoring.waiting(stop)(0.001)
        after = monitoring._health._job_s, monitoring._health._notifier_s
        assert all(later > earlier for earlier, later in zip(before, after, strict=True) if earlier and later)
        store = Store.open(settings.store)
        monitoring.opened(store)
        with urlopen(f"{address}readyz") as answer:
            assert answer.read() == b"ok\n"
        assert settings.store.path is not None
        settings.store.path.unlink()
        with pytest.raises(HTTPError, match="503") as lost:
            urlopen(f"{address}readyz")
        assert b"removed while it was in use" in lost.value.read()
        store.close()
