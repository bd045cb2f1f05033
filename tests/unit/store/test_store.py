"""The store: one transaction a batch, a batch that comes again holds as it is then, what changed is found."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.errors import DataLoss, StoreError
from engine.model.incidents import Incident
from engine.store import Store
from engine.store.store import KEPT_BATCHES, BatchId

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
SILENT = Incident(
    id="inc-1",
    key=("default", "broker-silent", (("broker", "1"),)),
    revision=1,
    rule="broker-silent",
    title="Broker 1 is silent",
    severity="high",
    status="open",
    component="broker",
    labels={"broker": "1"},
    first_seen=NOON,
    last_seen=NOON,
    resolved_at=None,
    count=1,
    cause="",
    impact="",
)


def put(store: Store, batch: int, *incidents: Incident) -> None:
    with store.batch(BatchId("query", batch)) as ledger:
        ledger.put_incidents(incidents)


def test_a_batch_that_comes_again_is_one_batch_and_holds_as_it_is_then(store: Store) -> None:
    worse = replace(SILENT, revision=2, severity="critical")
    put(store, 0, SILENT)
    put(store, 0, worse)
    assert (store.incidents(), store.batches()) == ([worse], 1)
    with store.batch(BatchId("another query", 0)):
        pass
    assert store.batches() == 2


def test_only_the_last_batches_of_a_query_are_remembered(store: Store) -> None:
    put(store, 0, SILENT)
    put(store, 1)
    with store.batch(BatchId("another query", 0)):
        pass
    put(store, KEPT_BATCHES)
    assert [store.has_batch(BatchId("query", number)) for number in (0, 1, KEPT_BATCHES)] == [False, True, True]
    assert store.has_batch(BatchId("another query", 0))
    assert store.incidents() == [SILENT]


def test_a_batch_that_fails_leaves_nothing_and_may_come_again(store: Store) -> None:
    def failing() -> None:
        with store.batch(BatchId("query", 0)) as ledger:
            ledger.put_incidents([SILENT])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert store.incidents() == []
    put(store, 0, SILENT)
    assert store.incidents() == [SILENT]


def test_every_revision_is_kept_and_the_last_one_counts(store: Store) -> None:
    later = replace(SILENT, revision=2, count=5)
    put(store, 0, SILENT)
    put(store, 1, later, replace(SILENT, id="inc-2"))
    assert [i.id for i in store.incidents()] == ["inc-1", "inc-2"]
    assert store.incidents()[0] == later
    assert store.revisions("inc-1") == [SILENT, later]


def test_a_reopened_store_knows_what_was_in_it(address: str) -> None:
    first = Store.open(address)
    put(first, 0, SILENT)
    first.close()
    again = Store.open(address)
    assert not put(again, 0)
    assert again.incidents() == [SILENT]
    assert again.batches() == 1
    again.close()


def test_what_changed_since_a_mark_is_found_once(store: Store) -> None:
    assert store.changed_since(0) == (0, ())
    put(store, 0, SILENT, replace(SILENT, id="inc-2"))
    mark, changed = store.changed_since(0)
    assert [i.id for i in changed] == ["inc-1", "inc-2"]
    assert store.changed_since(mark) == (mark, ())
    worse = replace(SILENT, revision=2, severity="critical")
    put(store, 1, worse)
    later, changed = store.changed_since(mark)
    assert (later > mark, changed) == (True, [worse])


def test_a_reader_sees_the_last_state_while_a_batch_is_being_written(store: Store) -> None:
    put(store, 0, SILENT)
    with store.batch(BatchId("query", 1)) as ledger:
        ledger.put_incidents([replace(SILENT, revision=2, count=7)])
        assert store.incidents() == [SILENT]
    assert store.incidents()[0].count == 7


def test_a_loss_told_twice_is_one_loss(store: Store) -> None:
    for batch in (0, 1):
        with store.batch(BatchId("query", batch)) as ledger:
            ledger.put_losses([DataLoss("a.log", 4, 8, "the file is gone")])
    assert [str(loss) for loss in store.losses()] == ["a.log: offsets 4 to 8 are gone (the file is gone)"]


def test_lines_lost_where_a_loss_of_unknown_size_ended_are_another_loss(store: Store) -> None:
    unknown, sized = (
        DataLoss("a.log", 4, 4, "the file was cut to 9 bytes"),
        DataLoss("a.log", 4, 9, "the file was cut to 0 bytes"),
    )
    for batch, loss in enumerate((unknown, sized)):
        with store.batch(BatchId("q", batch)) as ledger:
            ledger.put_losses([loss])
    assert [str(loss) for loss in store.losses()] == [str(unknown), str(sized)]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "not a store address"),
        ("mysql://db/x", "a store is at sqlite:///path/to/tocsin.db or postgresql\\+psycopg://user@host/database"),
        ("sqlite:////proc/nowhere/tocsin.db", "the incident store cannot be used"),
    ],
)
def test_a_bad_address_is_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        Store.open(url)


def test_a_file_that_is_no_store_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    path.write_text("not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        Store.open(f"sqlite:///{path}")
