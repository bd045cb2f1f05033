"""The earlier incidents of a rule, the nearest first, with what people wrote about them."""

from __future__ import annotations

import re
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import event

from engine.model.acts import Act, ActKind
from engine.model.incidents import AlertKey, Incident
from engine.model.past import NO_PAST, Past, PastIncident
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, incident

RULE = "disk-full"


def about(id: str, broker: str, scope: str = "prod", **changes: Any) -> Incident:
    """Return a resolved incident of RULE about a broker of a cluster."""
    key: AlertKey = (scope, RULE, (("broker", broker), ("cluster", scope)))
    fields = {"key": key, "alerts": (key,), "rule": RULE, "status": "resolved", "resolved_at": AT + timedelta(minutes=3)}
    return incident(id=id, **(fields | changes))


def fill(store: Store, *incidents: Incident) -> None:
    with store.batch(BatchId("q", store.batches())) as ledger:
        ledger.put_incidents(incidents)


def act(store: Store, id: str, kind: ActKind, text: str = "", **details: Any) -> Act:
    recorded = store.acts().record(
        Act(f"{id} {kind} {text}", id, kind, "mina", "page", AT + timedelta(hours=1), text, **details)
    )
    assert recorded.act is not None
    return recorded.act


def listed(past: Past) -> list[tuple[str, str]]:
    return [(each.incident.id, each.near) for each in past.incidents]


def test_those_of_the_entity_come_first_then_of_the_cluster_then_others_the_latest_first(store: Store) -> None:
    now = about("inc-now", "1", status="open")
    earlier = [about("inc-a", "1"), about("inc-b", "2"), about("inc-c", "1", "test"), about("inc-d", "1"), about("inc-e", "3")]
    other_rule = incident(id="inc-x", key=now.key, alerts=now.alerts)
    fill(store, other_rule, *earlier, now, about("inc-later", "1"))
    past = store.past_of(now)
    of_entity = [("inc-d", "entity"), ("inc-a", "entity")]
    assert listed(past) == [*of_entity, ("inc-e", "cluster"), ("inc-b", "cluster"), ("inc-c", "elsewhere")]
    assert past.total == 5
    assert store.past_of(earlier[0]) == NO_PAST


def test_those_that_never_were_incidents_do_not_count(store: Store) -> None:
    hidden = [about("inc-p", "1", pending=True), about("inc-m", "1", status="merged", merged_into="inc-a")]
    fill(store, *hidden, about("inc-r", "1", status="retracted"), now := about("inc-now", "1"))
    assert store.past_of(now) == NO_PAST


def test_only_the_nearest_few_are_read_and_of_these_first_what_people_acted_on(store: Store) -> None:
    fill(store, *(about(f"inc-{n}", "1") for n in range(8)), *(about(f"inc-t{n}", "2") for n in range(8)))
    fill(store, now := about("inc-now", "1"))
    act(store, "inc-2", ActKind.NOTE, "the log cleaner was dead")
    past = store.past_of(now)
    assert [each.incident.id for each in past.incidents] == ["inc-2", "inc-7", "inc-6", "inc-t7", "inc-t6", "inc-t5"]
    assert past.total == 16


def test_what_people_wrote_and_how_it_ended_comes_with_it(store: Store) -> None:
    fill(store, about("inc-a", "1", status="open", resolved_at=None), now := about("inc-now", "1"))
    act(store, "inc-a", ActKind.ASSIGN, "on call", assignee="jun")
    act(store, "inc-a", ActKind.ACKNOWLEDGE)
    notes = [act(store, "inc-a", ActKind.NOTE, f"note {n}") for n in range(4)]
    written = [*notes, act(store, "inc-a", ActKind.RESOLVE, "moved segments"), act(store, "inc-a", ActKind.USEFUL, "in time")]
    (past,) = store.past_of(now).incidents
    assert past == PastIncident(store.acts().incident("inc-a"), "entity", tuple(written[-5:]))
    assert (past.incident.status, past.incident.why) == ("resolved", "by mina: moved segments")


def test_an_index_serves_the_choice_and_no_body_is_read_for_it(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    fill(store, about("inc-a", "1"), now := about("inc-now", "1"))
    statements: list[tuple[str, tuple[object, ...]]] = []

    def record(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", record)
    store.past_of(now)
    event.remove(store._engine, "before_cursor_execute", record)
    ((choice, parameters),) = [each for each in statements if "row_number" in each[0] and "FROM incidents" in each[0]]
    with sqlite3.connect(tmp_path / "tocsin.db") as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {choice}", parameters)]
    connection.close()
    store.close()
    assert [step for step in plan if re.search(r"\bincidents\b", step)] == [
        "SEARCH incidents USING COVERING INDEX incidents_by_rule (rule=? AND number<?)",
        "SEARCH incidents USING INDEX sqlite_autoindex_incidents_1 (id=?)",
    ]
