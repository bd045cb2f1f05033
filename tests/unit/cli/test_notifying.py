"""The notifier of a run: on its own thread beside the job, or once at the end."""

from __future__ import annotations

import time
from pathlib import Path

from connectors.memory import MemoryReceiver
from engine.cli import notifying
from engine.cli.monitoring import Monitoring
from engine.config import load
from engine.model.notifications import DeliveryState, Receipt
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import TOO_LARGE

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\nroute: {receiver: terminal, group_wait: 0s}\nnotify_max_age: 0s\n"


def test_it_tells_while_a_run_goes_on_and_what_is_left_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text(CONFIG)
    settings, receiver, said = load(tmp_path / "tocsin.yml"), MemoryReceiver(), []
    store = Store.open(settings.store)
    live = notifying.build(store, settings, {"terminal": receiver}, said.append, False, Monitoring(settings, store))
    with notifying.running_notifier(live, said.append), store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([TOO_LARGE])
    assert [told.incident for told in receiver.notifications] == [TOO_LARGE]
    later = notifying.build(store, settings, {"terminal": receiver}, said.append, True, Monitoring(settings, store))
    assert notifying.drain(later, time.sleep, said.append) == 0
    assert said == []
    store.close()


def test_what_cannot_be_delivered_is_said(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text(CONFIG)
    settings, said = load(tmp_path / "tocsin.yml"), []
    store = Store.open(settings.store)
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([TOO_LARGE])
    receiver = MemoryReceiver(answers=[Receipt(DeliveryState.RETRY_LATER, "it is down", after_s=999)])
    notifier = notifying.build(store, settings, {"terminal": receiver}, said.append, True, Monitoring(settings, store))
    assert notifying.drain(notifier, time.sleep, said.append) == 0
    assert said == [
        "terminal was not told of inc-0123456789: retry later, it is down",
        "1 could not be delivered yet; they stay in the outbox, and the next run goes on with them",
    ]
    store.close()
