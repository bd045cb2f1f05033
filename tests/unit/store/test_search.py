"""Lists are selected, ordered and counted without reading the bodies of incidents."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from engine.model.incidents import Evidence
from engine.model.searches import Search
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, incident


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = Store.open(address)
    with opened.batch(BatchId("q", 0)) as ledger:
        ledger.put_incidents([incident(id="inc-1"), incident(id="inc-2", title="Größe überschritten", status="resolved")])
    yield opened
    opened.close()


def ids(store: Store, **search: object) -> list[str]:
    return [found.id for found in store.search(Search(**search), 10)[0]]  # type: ignore[arg-type]


def test_words_are_found_in_any_case_of_any_language(store: Store) -> None:
    assert ids(store, words=("GRÖSSE",)) == []
    assert ids(store, words=("GRÖßE", "über")) == ["inc-2"]


def test_the_text_is_that_of_the_last_revision(store: Store) -> None:
    with store.batch(BatchId("q", 1)) as ledger:
        ledger.put_incidents([incident(id="inc-1", revision=3, evidence=(Evidence("e2", "a", 1, AT, "another line"),))])
    assert ids(store, words=("another line",)) == ["inc-1"]
    assert ids(store, words=("another", "RecordTooLarge")) == []


def test_incidents_are_selected_and_counted_in_the_index_alone(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    statements: list[tuple[str, tuple[object, ...]]] = []

    def record(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", record)
    store.search(Search(("open", "resolved"), severity="critical"), 10)
    event.remove(store._engine, "before_cursor_execute", record)
    plans = []
    with sqlite3.connect(tmp_path / "tocsin.db") as connection:
        for statement, parameters in statements:
            if "FROM incidents" in statement:
                rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.append([row[3] for row in rows])
    connection.close()
    store.close()
    (plan,) = plans
    assert [step for step in plan if re.match("(SCAN|SEARCH) incidents", step)] == [
        "SCAN incidents USING COVERING INDEX incidents_listed"
    ]
