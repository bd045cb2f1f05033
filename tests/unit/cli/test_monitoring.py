"""Metrics, health and heartbeats beside a run, as its configuration asks."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

from engine.cli.monitoring import Monitoring
from engine.config import load
from engine.spark.job import BatchReport
from engine.spark.slices import Scanned
from engine.store import Store

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\n"


def opened(folder: Path, text: str) -> tuple[Monitoring, Store]:
    (folder / "tocsin.yml").write_text(text)
    settings = load(folder / "tocsin.yml")
    store = Store.open(settings.store)
    return Monitoring(settings, store), store


def test_a_run_serves_what_it_counted(tmp_path: Path) -> None:
    monitoring, store = opened(tmp_path, CONFIG + "metrics: {listen: '127.0.0.1:0'}\n")
    sentences: list[str] = []
    report = BatchReport(3, 7, 1, is_stored=True, amounts=[Scanned("a.log", 7, 700)])
    with monitoring.running(sentences.append):
        monitoring.batch_reported(report)
        monitoring.triggered(0.2)
        address = sentences[0].split()[5].removesuffix("metrics,")
        with urlopen(f"{address}metrics") as answer:
            text = answer.read().decode()
        with urlopen(f"{address}readyz") as answer:
            assert answer.read() == b"ok\n"
    assert 'tocsin_lines_total{stream="a.log"} 7.0' in text
    assert "tocsin_batches_total 1.0" in text
    assert "tocsin_store_up 1.0" in text
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
