"""What else was considered for an incident, from the alerts and incidents of a store."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from engine.model.incidents import Alert, AlertKey, Verdict
from engine.store import Store, considered
from engine.store.store import BatchId
from tests.building import at
from tests.unit.test_considering import alert, key, told


def fill(store: Store, *alerts: Alert) -> None:
    by_key: dict[AlertKey, list[Alert]] = {}
    for each in alerts:
        by_key.setdefault(each.key, []).append(each)
    with store.batch(BatchId("q", store.batches())) as ledger:
        verdicts = [Verdict(each, tuple(of_key)) for each, of_key in by_key.items()]
        ledger.put_findings(verdicts, (), (), ())


def test_alerts_of_the_same_entity_and_time_come_with_the_incident_that_they_are_part_of(store: Store) -> None:
    disk = alert("disk-full", broker="1")
    going_on = replace(alert("slow-disk", -500, "info", broker="1"), ends_at=None)
    fill(store, alert("broker-silent", 0, broker="1"), disk, going_on, alert("slow-disk", severity="info", broker="2"))
    other = told(id="inc-2", key=disk.key, alerts=(disk.key,), title="The disk of broker 1 is full", rule="disk-full")
    with store.batch(BatchId("q", store.batches())) as ledger:
        ledger.put_incidents([told(), other])
    first, second = store.considered_of(told())
    assert (first.rule, first.reason, first.incident, first.title) == ("disk-full", "apart", "inc-2", other.title)
    assert (second.rule, second.reason, second.incident, second.title) == ("slow-disk", "informs", "", "")
    assert [each.incident for each in store.considered_of(other)] == ["inc-1", ""]


def test_alerts_of_other_times_and_scopes_are_not_read(store: Store) -> None:
    before, after = alert("a", -200, "info", broker="1"), alert("b", 200, "info", broker="1")
    days_later = replace(alert("c", 10, "info", broker="1"), ends_at=at(0) + timedelta(days=2))
    elsewhere = replace(alert("d", 10, "info", broker="1"), key=("test", *key("d", broker="1")[1:]))
    fill(store, before, after, days_later, elsewhere)
    assert store.considered_of(told()) == ()


def test_nothing_was_considered_without_times_or_for_a_whole_cluster(store: Store) -> None:
    fill(store, alert("a", severity="info"))
    assert store.considered_of(told(first_seen=None)) == ()
    assert store.considered_of(told(key=key("broker-silent"))) == ()


def test_few_alerts_are_read_however_many_there_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(considered, "MOST_ALERTS", 5)
    fill(store, *(alert("a", n, "info", broker="1") for n in range(20)))
    (only,) = store.considered_of(told())
    assert only.count == 5


def test_the_index_of_ends_bounds_what_is_looked_at(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    statements: list[tuple[str, tuple[object, ...]]] = []

    def record(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", record)
    store.considered_of(told())
    event.remove(store._engine, "before_cursor_execute", record)
    with sqlite3.connect(tmp_path / "tocsin.db") as connection:
        plans = [
            connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchone()[3]
            for statement, parameters in statements
            if "FROM alerts" in statement
        ]
    connection.close()
    store.close()
    index = "SEARCH alerts USING INDEX alerts_by_end"
    assert plans == [f"{index} (scope=? AND until>? AND until<?)", f"{index} (scope=? AND until>?)"]
