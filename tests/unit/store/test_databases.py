"""Both databases do the same with what logs and operators put into a store, and a server that goes away is waited for."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from sqlalchemy import make_url, text

from engine.errors import DataLoss, RuntimeMissing, StoreAway, StoreError
from engine.model.incidents import Alert, AlertKey, Evidence, NotEvaluated, Verdict, interval_of
from engine.model.searches import Search
from engine.secrets import Secret
from engine.store import Store
from engine.store.databases import connect_arguments
from engine.store.outage import until_back
from engine.store.store import BatchId
from engine.store_address import StoreAddress
from tests.servers.postgresql import PASSWORD, USER
from tests.unit.store.test_retention import LATER, NOON, told
from tests.unit.store.test_store import SILENT, put

if TYPE_CHECKING:
    from tests.servers.postgresql import PostgresServer

NUL = "a\0b"
HALF = "a half \udc00 of a pair"


@pytest.fixture
def server_store(postgresql: PostgresServer) -> Iterator[Store]:
    opened = Store.open(postgresql.empty_store())
    yield opened
    opened.close()


def alert(key: AlertKey, event: str = "e1") -> Alert:
    return Alert(key, "firing", "high", NOON, NOON, None, 1, True, dict(key[2]), {}, (event,), (event,), NUL)


def test_a_server_that_vanished_is_noticed_by_the_client_too() -> None:
    url = make_url("postgresql+psycopg://u@h/d")
    names = ["connect_timeout", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "tcp_user_timeout"]
    assert sorted(connect_arguments(url)) == names
    own = connect_arguments(url.update_query_dict({"keepalives_idle": "7", "tcp_user_timeout": "0"}))
    assert sorted(own) == [name for name in names if name not in ("keepalives_idle", "tcp_user_timeout")]


def test_texts_that_a_database_may_not_take_are_stored_and_found(store: Store) -> None:
    key: AlertKey = ("prod", "rule", (("topic", NUL),))
    proof = Evidence("e1", NUL, 1, NOON, f"a line with {NUL}, 100% and a \\")
    incident = told("inc-1", alert(key), title=NUL, labels={"topic": NUL}, evidence=(proof,), cause="half_done")
    with store.batch(BatchId("q", 0)) as ledger:
        ledger.put_findings([Verdict(key, (alert(key),))], [proof], (), [NotEvaluated(NUL, HALF, NUL)])
        ledger.put_incidents([incident])
        ledger.put_losses([DataLoss(NUL, 0, 1, HALF)])
    for search in (
        Search(labels=(("topic", NUL),)),
        Search(labels=(("topic", ""),)),
        Search(words=("A\0B", "100%", "\\", "half_")),
    ):
        assert [each.id for each in store.search(search, 9)[0]] == ["inc-1"]
    assert store.search(Search(words=("halfxdone",)), 9)[0] == store.search(Search(words=("100%and",)), 9)[0] == []
    assert store.incidents() == [incident]
    assert [(blind.scope, blind.what) for blind in store.blinds()] == [("a\ufffdb", "a half ? of a pair")]
    assert [loss.source_id for loss in store.losses()] == ["a\ufffdb"]


def test_keys_of_any_length_are_stored_and_told_apart(store: Store) -> None:
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyzäöü", k=9000))
    keys: list[AlertKey] = [("prod", "rule", (("client", long + end),)) for end in "xy"]
    blinds = [NotEvaluated("prod", long + end, long) for end in "xy"]
    with store.batch(BatchId("q", 0)) as ledger:
        ledger.put_findings([Verdict(key, (alert(key),)) for key in keys], (), (), blinds)
        ledger.put_incidents([told(f"inc-{number}", alert(key), labels={"client": long}) for number, key in enumerate(keys)])
        ledger.put_losses(DataLoss(long + end, 0, 1, "why") for end in "xy")
    with store.batch(BatchId("q", 1)) as ledger:
        assert dict(ledger.alerts("prod")) == {key: (alert(key),) for key in keys}
        assert dict(ledger.alerts("prod", [interval_of(alert(keys[1]))])) == {keys[1]: (alert(keys[1]),)}
        assert set(ledger.alert_intervals("prod", NOON)) == {interval_of(alert(key)) for key in keys}
        assert [each.id for each in ledger.incidents("prod", {keys[1]})] == ["inc-1"]
        assert ledger.put_findings([Verdict(keys[0], ())], (), (), ()) == [interval_of(alert(keys[0]))]
        assert dict(ledger.alerts("prod")) == {keys[1]: (alert(keys[1]),)}
    assert store.blinds() == blinds
    assert len(store.losses()) == 2
    assert [each.id for each in store.search(Search(labels=(("client", long),)), 9)[0]] == ["inc-1", "inc-0"]


def test_numbers_beyond_32_bits_are_stored(store: Store) -> None:
    with store.batch(BatchId("q", 2**40)) as ledger:
        ledger.put_losses([DataLoss("topic", 2**50, 2**60, "why")])
    last = store.last_batch("q")
    assert last is not None
    assert last.batch == 2**40
    assert [(loss.lost_from, loss.lost_to) for loss in store.losses()] == [(2**50, 2**60)]


def test_a_mark_misses_nothing_while_several_write(store: Store, address: str) -> None:
    """A sequence of PostgreSQL would: its numbers are taken before the commit, and another writer may commit in between."""
    per_writer, seen, mark = 12, set[str](), 0

    def write(name: str) -> None:
        with closing(Store.open(address)) as own:
            for number in range(per_writer):
                put(own, number, replace(SILENT, id=f"inc-{name}-{number}"))

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        mark, changed = store.changed_since(mark)
        seen.update(incident.id for incident in changed)
    seen.update(incident.id for incident in store.changed_since(mark)[1])
    assert seen == {f"inc-{name}-{number}" for name in "abc" for number in range(per_writer)}


def test_old_incidents_with_hostile_text_are_removed(store: Store) -> None:
    old = alert(("prod", "rule", (("topic", NUL),)), NUL)
    old = replace(old, status="resolved", ends_at=NOON)
    put(store, 0, told("inc-old", old, cause=NUL))
    put(store, 1, told("inc-last", old, first_seen=NOON + timedelta(days=9)))
    assert store.prune(LATER) == 1


@pytest.mark.server
def test_texts_are_ordered_by_bytes_in_a_database_of_any_language(postgresql: PostgresServer) -> None:
    with postgresql.connect() as connection:
        connection.execute("CREATE DATABASE english LOCALE_PROVIDER icu ICU_LOCALE 'en' TEMPLATE template0")
    url = postgresql.address.replace("/postgres", "/english").replace("@", f":{PASSWORD}@")
    with closing(Store.open(url)) as store:
        with store.batch(BatchId("q", 0)) as ledger:
            ledger.put_findings((), (), (), [NotEvaluated("prod", what, "why") for what in ("a", "B", "_c", "é")])
        assert [blind.what for blind in store.blinds()] == ["B", "_c", "a", "é"]


@pytest.mark.server
def test_a_role_that_may_only_read_can_open_and_read_a_store(server_store: Store, postgresql: PostgresServer) -> None:
    put(server_store, 0, SILENT)
    url = postgresql.address.replace(f"{USER}@", "reader:reads@") + "?" + server_store.name.partition("?")[2]
    schema_name = server_store.name.partition("search_path%3D")[2]
    with postgresql.connect() as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reads'")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema_name} TO reader".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema_name} TO reader".encode())
    with closing(Store.open(url)) as reading:
        assert reading.incidents() == [SILENT]
        with pytest.raises(StoreError, match="permission denied for table") as failure:
            put(reading, 1, SILENT)
        assert not isinstance(failure.value, StoreAway)


@pytest.mark.server
def test_the_password_is_in_no_message(
    postgresql: PostgresServer, server_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD)
    address = StoreAddress(postgresql.address, Secret("env", "STORE_PASSWORD"))
    wrong = replace(address, url=postgresql.address.replace("/postgres", "/nothing"))
    with_password = postgresql.address.replace("@", ":wrong-secret@")
    sentences = [server_store.name, str(address), repr(address), str(StoreAddress(with_password))]
    for bad, reason in ((wrong, 'database "nothing" does not exist'), (with_password, "password authentication failed")):
        with pytest.raises(StoreError, match=reason) as failure:
            Store.open(bad)
        assert not isinstance(failure.value, StoreAway), "a mistake is not waited for"
        sentences.append(str(failure.value))
    assert not [each for each in sentences if PASSWORD in each or "wrong-secret" in each]
    monkeypatch.delenv("STORE_PASSWORD")


@pytest.mark.server
def test_a_server_that_is_away_is_waited_for(server_store: Store, postgresql: PostgresServer) -> None:
    put(server_store, 0, SILENT)
    later, sentences = replace(SILENT, id="inc-2"), list[str]()
    with pytest.raises(StoreAway) as failure, server_store.batch(BatchId("q", 1)) as ledger:
        ledger.put_incidents([later])
        postgresql.crash()
    assert not failure.value.locked
    for work in (server_store.incidents, lambda: Store.open(postgresql.address.replace("@", f":{PASSWORD}@"))):
        with pytest.raises(StoreAway, match=r"the incident store cannot be used .*Connection refused"):
            work()
    until_back(lambda: put(server_store, 1, later), lambda _: postgresql.start(), sentences.append)
    assert [each.id for each in server_store.incidents()] == ["inc-1", "inc-2"]
    assert sentences == [], "a short outage is not reported"


def test_a_package_that_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RuntimeMissing, match=r"pip install 'tocsin\[postgresql\]'"):
        Store.open("postgresql+psycopg://tocsin@127.0.0.1:1/tocsin")


def test_a_transaction_that_fails_leaves_the_store_usable(store: Store) -> None:
    with pytest.raises(StoreError), store._begin() as connection:
        connection.execute(text("SELECT * FROM no_such_table"))
    put(store, 0, SILENT)
    assert store.incidents() == [SILENT]


@pytest.mark.server
def test_words_are_searched_for_in_an_index(server_store: Store) -> None:
    put(server_store, 0, *(replace(SILENT, id=f"inc-{number}", title=f"incident {number}") for number in range(20)))
    with server_store._begin() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        plan = connection.scalars(text("EXPLAIN SELECT incident FROM searchable WHERE text LIKE '%incident 7%'")).all()
    assert any("searchable_by_part" in step for step in plan), plan
    assert [each.id for each in server_store.search(Search(words=("incident 7",)), 9)[0]] == ["inc-7"]
