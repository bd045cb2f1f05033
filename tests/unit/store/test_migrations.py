"""A store of an older version is brought up to date, and goes on with what it knew."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import create_engine, inspect

from engine.codec import dumps
from engine.errors import StoreError
from engine.model.acts import Act, ActKind
from engine.model.incidents import STATES, Alert, AlertCourse, NotEvaluated, Verdict, interval_of
from engine.model.notifications import NotificationLog
from engine.model.searches import Search
from engine.store import Store, migrations, schema
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident

VERSION_1 = """
CREATE TABLE meta (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE batches ("query" TEXT NOT NULL, batch INTEGER NOT NULL, "plan" TEXT NOT NULL, PRIMARY KEY ("query", batch));
CREATE TABLE verdicts (scope TEXT NOT NULL, rule TEXT NOT NULL, entity TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (scope, rule, entity));
CREATE TABLE evidence (event_id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (event_id));
CREATE TABLE rosters (scope TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (scope));
CREATE TABLE blinds (scope TEXT NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (scope, what, why));
CREATE TABLE losses (source TEXT NOT NULL, lost_from INTEGER NOT NULL, lost_to INTEGER NOT NULL, why TEXT NOT NULL,
  PRIMARY KEY (source, lost_from));
CREATE TABLE revisions (id TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, revision));
CREATE TABLE incidents (id TEXT NOT NULL, number INTEGER NOT NULL, scope TEXT NOT NULL, status TEXT NOT NULL,
  body TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (number));
CREATE INDEX incidents_by_scope ON incidents (scope, number);
CREATE TABLE deliveries (receiver TEXT NOT NULL, incident TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (receiver, incident));
INSERT INTO meta VALUES ('schema', '1');
INSERT INTO batches VALUES ('q', 0, '');
INSERT INTO losses VALUES ('a.log', 4, 9, 'the file is gone');
INSERT INTO deliveries VALUES ('terminal', 'inc-1', '{"rule":"a","status":"open","severity":"high"}');
"""


def written(path: Path, script: str) -> str:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return f"sqlite:///{path}"


def shape(url: str) -> dict[str, tuple[list[str], list[str], list[str]]]:
    """Return the columns, keys and indexes of every table."""
    engine = create_engine(url)
    seen = inspect(engine)
    found = {
        table: (
            [c["name"] for c in seen.get_columns(table)],
            seen.get_pk_constraint(table)["constrained_columns"],
            sorted(str(i["name"]) for i in seen.get_indexes(table)),
        )
        for table in seen.get_table_names()
    }
    engine.dispose()
    return found


def test_version_1_is_brought_up_to_date_and_keeps_what_it_knew(tmp_path: Path) -> None:
    url = written(tmp_path / "old.db", VERSION_1)
    store = Store.open(url)
    assert store.batches() == 1
    (pair, told), *others = store.outbox().notification_logs().items()
    assert (pair, others) == (("terminal", "inc-1"), [])
    assert told == NotificationLog("a", "open", "high", told.at)
    assert [str(loss) for loss in store.losses()] == ["a.log: offsets 4 to 9 are gone (the file is gone)"]
    assert abs(datetime.now(UTC) - told.at) < timedelta(minutes=5), "waits and repetitions count from the migration on"
    store.close()
    Store.open(url).close()
    Store.open(f"sqlite:///{tmp_path}/new.db").close()
    assert shape(url) == shape(f"sqlite:///{tmp_path}/new.db")


def _as_then(body: str) -> str:
    """Return `body` with its times written as in version 1."""
    return re.sub(r"(?<=\")(\d{4}-[^\"]+)Z(?=\")", lambda found: datetime.fromisoformat(found[1] + "+00:00").isoformat(), body)


@pytest.mark.parametrize(("rule", "broker"), [("it's a rule", "é1"), ("rule", "é" * 3000)], ids=["short", "long"])
def test_what_rules_said_of_entities_is_kept_alert_by_alert(tmp_path: Path, rule: str, broker: str) -> None:
    noon, key = datetime(2022, 10, 5, 12, tzinfo=UTC), ("prod", rule, (("broker", broker),))
    times = (noon, noon + timedelta(milliseconds=1), noon + timedelta(hours=1))
    alerts = tuple(Alert(key, "firing", "high", at, at, None, 1, True, {}, {}, ("e1",), ("e1",)) for at in times)
    url = written(tmp_path / "old.db", VERSION_1)
    with sqlite3.connect(tmp_path / "old.db") as connection:
        row = ("prod", rule, f'[["broker","{broker}"]]', _as_then(dumps(Verdict(key, alerts))))
        connection.execute("INSERT INTO verdicts VALUES (?, ?, ?, ?)", row)
        told = replace(incident(), id="inc-1", key=key, rule=rule, first_seen=noon, alerts=(key,))
        for number, each in enumerate((told, replace(told, id="inc-2", status="merged", merged_into="inc-1"))):
            body = _as_then(dumps(each))
            connection.execute("INSERT INTO incidents VALUES (?, ?, ?, ?, ?)", (each.id, number, "prod", each.status, body))
            connection.execute("INSERT INTO revisions VALUES (?, ?, ?)", (each.id, each.revision, body))
        connection.execute("INSERT INTO blinds VALUES ('prod', 'a.log', ?)", (broker,))
    connection.close()
    store = Store.open(url)
    with store.reading() as ledger:
        assert ledger.alerts("prod") == {key: alerts}
        assert [each.id for each in ledger.incidents("prod", {key}, noon)] == ["inc-1", "inc-2"]
        assert ledger.blinds("prod") == [NotEvaluated("prod", "a.log", broker)]
        assert ledger.incidents("prod", {("prod", "another", key[2])}) == []
        assert ledger.alert_intervals("prod", noon) == [interval_of(alert) for alert in alerts]
    for search in (
        Search(("open",), "critical", component="connect"),
        Search(("open",), words=("RECORDTOOLARGE",), labels=(("task", "0"),)),
    ):
        assert store.search(search, 10) == ([told], dict.fromkeys(STATES, 0) | {"open": 1, "merged": 1})
    with store.batch(BatchId("q", 1)) as writing:
        assert writing is not None
        writing.put_findings([Verdict(key, (alerts[2],), final_before=times[1])], (), (), ())
        assert writing.alerts("prod") == {key: (alerts[0], alerts[2])}
    assert [each.id for each in store.changed_since(1)[1]] == ["inc-2"], "marks of readers stay what they were"
    assert store.prune(datetime.now(UTC) - timedelta(minutes=5)) == 0, "their age is counted from the migration on"
    store.close()


VERSION_8 = """
DROP INDEX incidents_by_rule;
DROP INDEX incidents_listed;
ALTER TABLE incidents DROP COLUMN began;
ALTER TABLE incidents DROP COLUMN "count";
CREATE INDEX incidents_listed ON incidents (state, severity, seen, component, scope, rule, first_seen, until, id);
DROP TABLE acts;
DROP TABLE facts;
DROP TABLE handlings;
UPDATE meta SET value = '8' WHERE name = 'schema';
"""


def test_incidents_from_before_people_could_act_are_acted_on_like_others(tmp_path: Path) -> None:
    noon = datetime(2022, 10, 5, 12, tzinfo=UTC)
    firings = tuple(
        AlertCourse("root", "r", "", "high", at, at, None, 1, {}) for at in (noon, noon + timedelta(minutes=9, milliseconds=5))
    )
    told = [
        incident(id="inc-1", course=firings, count=3),
        incident(id="inc-2", course=(), first_seen=noon),
        incident(id="inc-3", course=(), first_seen=None, last_seen=None),
    ]
    url = f"sqlite:///{tmp_path}/old.db"
    before = Store.open(url)
    with before.batch(BatchId("q", 0)) as ledger:
        ledger.put_incidents(told)
    before.close()
    with sqlite3.connect(tmp_path / "old.db") as connection:
        columns = 'SELECT id, began, "count" FROM incidents ORDER BY id'
        rows = connection.execute(columns).fetchall()
        connection.executescript(VERSION_8)
    connection.close()
    store = Store.open(url)
    with sqlite3.connect(tmp_path / "old.db") as connection:
        assert connection.execute(columns).fetchall() == rows
    connection.close()
    recorded = store.acts().record(Act("key", "inc-1", ActKind.ACKNOWLEDGE, "mina", "page", noon + timedelta(hours=1)))
    assert recorded.incident.status == "acknowledged"
    assert store.search(Search(("acknowledged",)), 10)[0] == [recorded.incident]
    store.close()
    Store.open(f"sqlite:///{tmp_path}/new.db").close()
    assert shape(url) == shape(f"sqlite:///{tmp_path}/new.db")


def test_a_store_of_version_9_gets_the_indexes_of_version_10_in_each_database(address: str) -> None:
    with closing(Store.open(address)) as store, store._begin() as connection:
        connection.exec_driver_sql("DROP INDEX incidents_by_rule")
        connection.exec_driver_sql("DROP TABLE facts")
        connection.exec_driver_sql("UPDATE meta SET value = '9' WHERE name = 'schema'")
    with closing(Store.open(address)) as store, store._reading() as connection:
        columns = {
            index["name"]: index["column_names"]
            for table in ("incidents", "facts")
            for index in inspect(connection).get_indexes(table)
        }
    assert columns["incidents_by_rule"] == ["rule", "number", "state", "scope", "id"]
    assert columns["facts_by_time"] == ["scope", "at"]


LATER_STEPS = ("CREATE TABLE later (name TEXT NOT NULL)", {"sqlite": "SELECT 1", "postgresql": "SELECT 1::bigint"})


def test_a_later_step_runs_in_each_database_as_a_whole_or_not_at_all(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = schema.SCHEMA_VERSION
    Store.open(address).close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", first + 1)
    monkeypatch.setattr(migrations, "STEPS", {first: (*LATER_STEPS, "INSERT INTO nowhere VALUES (1)")})
    with pytest.raises(StoreError, match="nowhere"):
        Store.open(address)
    monkeypatch.setattr(migrations, "STEPS", {first: LATER_STEPS})
    with closing(Store.open(address)) as store, store._reading() as connection:
        assert inspect(connection).has_table("later")
    monkeypatch.setattr(schema, "SCHEMA_VERSION", first)
    with pytest.raises(StoreError, match=f"schema {first + 1}, this one is {first}"):
        Store.open(address)


@pytest.mark.parametrize("version", ["0", str(schema.SCHEMA_VERSION + 1), "x"])
def test_a_version_that_is_not_known_is_refused_and_left_alone(tmp_path: Path, version: str) -> None:
    url = written(tmp_path / "other.db", VERSION_1 + f"UPDATE meta SET value = '{version}';")
    with pytest.raises(StoreError, match=f"schema {version}, this one is {schema.SCHEMA_VERSION}"):
        Store.open(url)
    assert "outbox" not in shape(url)
