"""A store that another process holds is waited for; what cannot pass by itself is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import update

from engine.errors import StoreAway, StoreError
from engine.store import Store, schema
from engine.store.outage import ANNOUNCE_AFTER_S, ANNOUNCE_EVERY_S, StoreOutage, until_back
from engine.store.store import BatchId

LOCKED = StoreAway("it is locked", locked=True)


@contextmanager
def held(address: str) -> Iterator[Callable[[], None]]:
    """Keep everybody else from writing, as another process would, for as long as the body runs or until it calls what it
    gets."""
    with closing(Store.open(address)) as other, ExitStack() as held:
        held.enter_context(other.amending())
        yield held.close


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = Store.open(address, busy_s=0.01)
    yield opened
    opened.close()


def put(store: Store) -> bool:
    with store.batch(BatchId("query", 0)):
        return True


def test_a_store_that_is_written_to_is_away_and_can_be_read(store: Store, address: str) -> None:
    with held(address):
        with pytest.raises(StoreAway, match="another process is writing to the incident store") as failure:
            put(store)
        assert failure.value.locked
        assert store.incidents() == []
    assert put(store)


def test_work_is_done_again_until_the_store_is_back(store: Store, address: str) -> None:
    sentences: list[str] = []
    clock = iter(range(0, 1000, 7))
    with held(address) as release:
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 5:
                release()

        assert until_back(lambda: put(store), pause, sentences.append, lambda: next(clock))
    assert store.batches() == 1
    assert sentences[0].startswith(f"waiting for the incident store for 14 s now, nothing is lost: {store.name}: ")
    assert sentences[1:] == ["the incident store is back after 35 s"]


def test_a_stop_ends_the_wait(store: Store, address: str) -> None:
    with held(address), pytest.raises(StoreAway):
        until_back(lambda: put(store), lambda seconds: True, pytest.fail)


def test_what_does_not_pass_by_itself_is_not_waited_for() -> None:
    def broken() -> None:
        raise StoreError("no such table")

    with pytest.raises(StoreError, match="no such table"):
        until_back(broken, pytest.fail, pytest.fail)


def test_a_long_absence_is_said_now_and_then_and_a_short_one_never() -> None:
    now = [0.0]
    absence = StoreOutage(lambda: now[0])
    times = []
    for now[0] in range(int(ANNOUNCE_EVERY_S + ANNOUNCE_AFTER_S) + 1):
        times += [now[0]] if absence.goes_on(LOCKED) else []
    assert times == [ANNOUNCE_AFTER_S, ANNOUNCE_AFTER_S + ANNOUNCE_EVERY_S]
    assert absence.ends() is not None
    assert absence.goes_on(LOCKED) is None
    assert absence.ends() is None


def test_opening_a_store_that_is_held_can_be_waited_for_when_it_must_write(store: Store, address: str) -> None:
    with held(address):
        Store.open(address, busy_s=0.01).close()
        with pytest.raises(StoreAway):
            write_version(store, "1")
    write_version(store, "1")
    with closing(store._engine.connect()) as other, other.begin(), pytest.raises(StoreAway):
        Store.open(address, busy_s=0.01)


def write_version(store: Store, version: str) -> None:
    with store._begin() as connection:
        connection.execute(update(schema.meta).filter_by(name="schema").values(value=version))


def test_opening_a_store_at_a_wrong_place_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "folder.db"
    folder.mkdir()
    with pytest.raises(StoreError) as failure:
        Store.open(f"sqlite:///{folder}")
    assert not isinstance(failure.value, StoreAway)
