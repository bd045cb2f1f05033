"""What is removed for its age: incidents that are over, with all that is only theirs; never what somebody may still need."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import event, func, select

from engine.model.acts import Act, ActKind
from engine.model.incidents import Alert, AlertKey, Evidence, Incident, Verdict
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.model.routes import Silence
from engine.store import Store, schema
from engine.store.retention import removable
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
NOW = datetime.now(UTC)
LATER = NOW + timedelta(hours=1)
DAY = timedelta(days=1)


def key(name: str) -> AlertKey:
    return ("prod", "rule", (("entity", name),))


def alert(name: str, at: datetime, status: str = "resolved") -> Alert:
    event = f"{name}-{at:%d%H}"
    ends = None if status == "firing" else at + timedelta(minutes=5)
    return Alert(key(name), status, "high", at, at, ends, 1, True, {}, {}, (event,), (event,))


def told(id_: str, *alerts: Alert, **changes: Any) -> Incident:
    over = all(each.ends_at for each in alerts)
    proof = tuple(Evidence(event, "a.log", 1, each.starts_at, "text") for each in alerts for event in each.evidence)
    facts = {"first_seen": min(a.starts_at for a in alerts), "last_seen": max(a.last_seen for a in alerts), "evidence": proof}
    ended = {"status": "resolved" if over else "open", "resolved_at": alerts[-1].ends_at, "key": alerts[0].key, "rule": "rule"}
    return incident(**{"id": id_, "revision": 1, "alerts": tuple(a.key for a in alerts), **facts, **ended, **changes})


def put(store: Store, *incidents: Incident, alerts: tuple[Alert, ...] = (), batch: int = 0) -> None:
    by_key: dict[AlertKey, list[Alert]] = {}
    for each in alerts:
        by_key.setdefault(each.key, []).append(each)
    with store.batch(BatchId("query", batch)) as ledger:
        verdicts = [Verdict(of, tuple(said)) for of, said in by_key.items()]
        ledger.put_findings(verdicts, [proof for each in incidents for proof in each.evidence], (), ())
        ledger.put_incidents(incidents)


def rows(store: Store) -> dict[str, int]:
    with store._reading() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in schema.metadata.sorted_tables
            if table is not schema.meta
        }


def ids(store: Store) -> set[str]:
    return set(store.ids())


def test_what_is_over_and_old_goes_with_all_that_is_only_its(store: Store) -> None:
    old, last = told("inc-old", alert("a", NOON)), told("inc-last", alert("z", NOON))
    put(store, old, replace(old, revision=2), alerts=(alert("a", NOON),))
    outbox = store.outbox()
    entry = Delivery("ops", "inc-old", 1, Reason.OPENED, NOON, NOON, DeliveryState.DELIVERED)
    outbox.settle([Settlement(entry, NOON, NotificationLog("rule", "open", "high", NOON))])
    outbox.put_silence(Silence("s", (), NOON, NOON + DAY))
    put(store, last, alerts=(alert("z", NOON),), batch=1)
    assert store.prune(NOW - DAY) == 0
    assert ids(store) == {"inc-old", "inc-last"}
    assert store.prune(LATER) == 1
    assert ids(store) == {"inc-last"}
    kept = {"alerts": 2, "alert_evidence": 1, "batches": 2, "evidence": 1, "incidents": 1, "revisions": 1, "searchable": 1}
    kept |= {"told": 1, "incident_labels": len(last.labels)}
    assert {name: count for name, count in rows(store).items() if count} == kept
    with store.reading() as ledger:
        assert set(ledger.alerts("prod")) == {key("z")}


def test_an_alert_that_was_removed_never_comes_back(store: Store) -> None:
    put(store, told("inc-old", alert("a", NOON)), alerts=(alert("a", NOON),))
    put(store, told("inc-last", alert("z", NOON)), batch=1)
    store.prune(LATER)
    put(store, alerts=(alert("a", NOON), alert("a", NOON + 30 * DAY)), batch=2)
    with store.reading() as ledger:
        assert ledger.alerts("prod")[key("a")] == (alert("a", NOON + 30 * DAY),)


def test_what_is_open_or_still_to_be_told_or_changed_last_stays(store: Store) -> None:
    put(store, told("inc-open", alert("a", NOON, "firing")), told("inc-untold", alert("b", NOON)))
    put(store, told("inc-last", alert("c", NOON)), batch=1)
    store.outbox().put(Delivery("ops", "inc-untold", 1, Reason.OPENED, NOON, NOON, DeliveryState.RETRY_LATER))
    assert store.prune(LATER) == 0
    assert ids(store) == {"inc-open", "inc-untold", "inc-last"}
    assert store.changed_since(0)[0] > 0


def test_what_a_person_reopened_or_acted_on_later_stays(store: Store) -> None:
    put(store, told("inc-reopened", alert("a", NOON)), told("inc-noted", alert("b", NOON)), told("inc-old", alert("c", NOON)))
    put(store, told("inc-last", alert("d", NOON)), batch=1)
    long_ago = NOW - DAY
    store.acts().record(Act("1", "inc-reopened", ActKind.REOPEN, "mina", "page", long_ago))
    store.acts().record(Act("2", "inc-noted", ActKind.NOTE, "mina", "page", LATER + DAY, "the disk"))
    store.acts().record(Act("3", "inc-old", ActKind.NOTE, "mina", "page", long_ago, "the disk"))
    assert store.prune(LATER) == 1
    assert ids(store) == {"inc-reopened", "inc-noted", "inc-last"}


def test_what_was_read_up_to_stays_what_was_read_up_to(store: Store) -> None:
    put(store, told("inc-1", alert("a", NOON)), told("inc-2", alert("b", NOON)))
    mark, _ = store.changed_since(0)
    store.prune(LATER)
    put(store, told("inc-3", alert("c", NOON)), batch=1)
    assert [each.id for each in store.changed_since(mark)[1]] == ["inc-3"]


def test_what_became_part_of_an_incident_goes_with_it(store: Store) -> None:
    survivor = told("inc-root", alert("a", NOON), alert("b", NOON))
    part = told("inc-part", alert("b", NOON), status="merged", merged_into="inc-root")
    put(store, survivor, part)
    put(store, told("inc-last", alert("z", NOON)), batch=1)
    assert store.prune(LATER) == 1
    assert ids(store) == {"inc-last"}


def test_a_step_is_bounded_and_steps_get_through(store: Store) -> None:
    put(store, *(told(f"inc-{n}", alert(f"e{n}", NOON)) for n in range(10)))
    put(store, told("inc-last", alert("z", NOON)), batch=1)
    assert [store.prune(LATER, limit=4) for _ in range(4)] == [4, 4, 2, 0]


def test_evidence_that_an_alert_which_stays_is_proved_by_too_stays(store: Store) -> None:
    shared = alert("a", NOON)
    other = replace(alert("b", NOON, "firing"), evidence=shared.evidence)
    put(store, told("inc-old", shared), told("inc-open", other), alerts=(shared, other))
    assert store.prune(LATER) == 1
    with store.reading() as ledger:
        assert set(ledger.evidence(shared.evidence)) == set(shared.evidence)


def test_a_neighbour_of_the_same_key_that_stays_keeps_what_is_near_to_it() -> None:
    first, second, third = (told(f"inc-{n}", alert("a", NOON + n * DAY / 2)) for n in range(3))
    far = told("inc-far", alert("a", NOON + 9 * DAY))
    again = told("inc-open", alert("a", NOON + 1.5 * DAY, "firing"))
    assert removable([first, second, third, far], [first, second, third, far]) == [first, second, third, far]
    assert removable([first, second], [first, second, third, far]) == []
    assert removable([first, second, third, far], [first, second, third, again]) == [], "each is near to the next"
    assert removable([far], [first, far]) == [far]


def test_a_step_reads_no_incident_that_shares_no_key(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    put(store, *(told(f"inc-{n}", alert(f"e{n}", NOON)) for n in range(3)))
    statements: list[tuple[str, tuple[object, ...]]] = []

    def record(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", record)
    assert store.prune(LATER) == 2
    event.remove(store._engine, "before_cursor_execute", record)
    store.close()
    with closing(sqlite3.connect(tmp_path / "tocsin.db")) as connection:
        steps = {
            row[3]
            for statement, parameters in statements
            if "body" in statement and "FROM incidents" in statement
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        }
    assert any("incidents" in step for step in steps)
    assert not [step for step in steps if re.match("SCAN incidents", step)], "the cost would grow with the store"
