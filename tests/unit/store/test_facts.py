"""A picture is built anew when something has changed, and only then; what is gone is removed for its age."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from engine.model.incidents import DAWN
from engine.model.matches import Value
from engine.model.pictures import ClusterPicture, StatedFact
from engine.store import Store, facts, schema
from engine.store.facts import FactTable, prune

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


class Rollback(Exception):
    """Ends a transaction."""


def stated(kind: str, name: str, minute: float, **values: Value) -> StatedFact:
    return StatedFact("prod", kind, name, NOON + timedelta(minutes=minute), values)


def group(name: str, minute: float) -> StatedFact:
    return stated("group", name, minute, group=name, state="Stable")


def cluster(minute: float) -> StatedFact:
    return stated("cluster", "x", minute, cluster_id="x")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ClusterPicture | None]]:
    """Return the pictures that are built from here on."""
    pictures: list[ClusterPicture | None] = []
    picture_of = facts.picture_of

    def recording(stated: list[StatedFact]) -> ClusterPicture | None:
        pictures.append(picture_of(stated))
        return pictures[-1]

    monkeypatch.setattr(facts, "picture_of", recording)
    yield pictures


def groups_at(store: Store, minute: float) -> list[str]:
    with store._reading() as connection:
        picture = FactTable(connection).picture("prod", NOON + timedelta(minutes=minute))
    return [] if picture is None else list(picture.groups)


def put(store: Store, *stated: StatedFact) -> None:
    with store._begin() as connection:
        FactTable(connection).put(stated)


def test_a_picture_of_what_was_rolled_back_is_no_picture(store: Store) -> None:
    put(store, group("a", 0))
    with suppress(Rollback), store._begin() as connection:
        table = FactTable(connection)
        table.put([group("never", 1)])
        picture = table.picture("prod", NOON + timedelta(minutes=2))
        assert picture is not None
        assert list(picture.groups) == ["a", "never"]
        raise Rollback
    put(store, group("b", 1))
    assert groups_at(store, 2) == ["a", "b"]


def test_rounds_without_change_cost_no_picture(store: Store, built: list[ClusterPicture | None]) -> None:
    put(store, group("a", 0), cluster(0))
    for minute in range(1, 6):
        put(store, group("a", minute), cluster(minute))
        with store._reading() as connection:
            picture = FactTable(connection).picture("prod", NOON + timedelta(minutes=9))
        assert picture is not None
        assert picture.at == NOON + timedelta(minutes=minute)
    assert len(built) == 1
    put(store, group("b", 5))
    assert (groups_at(store, 9), len(built)) == (["a", "b"], 2)


def test_the_pictures_that_were_used_last_stay(store: Store, built: list[ClusterPicture | None]) -> None:
    put(store, *(group(f"g-{minute}", minute) for minute in range(facts.MOST_PICTURES + 1)))
    for minute in range(facts.MOST_PICTURES):
        groups_at(store, minute)
    groups_at(store, 0)
    groups_at(store, facts.MOST_PICTURES)
    assert len(built) == facts.MOST_PICTURES + 1
    groups_at(store, 0)
    assert len(built) == facts.MOST_PICTURES + 1


def test_the_recent_pictures_are_of_clusters_that_are_asked_each_with_one_before(store: Store) -> None:
    def names(minute: float) -> dict[str, tuple[list[str], list[str] | None]]:
        recent = store.recent_pictures(NOON + timedelta(minutes=minute))
        return {
            scope: (list(each.last.groups), None if each.earlier is None else list(each.earlier.groups))
            for scope, each in recent.items()
        }

    pasted = StatedFact("pasted", "cluster", "y", DAWN, {"cluster_id": "y"})
    put(store, pasted, cluster(0), group("a", 0), group("b", 55))
    assert names(50) == {"prod": (["a"], None)}
    put(store, group("c", 90), cluster(90))
    assert names(95) == {"prod": (["a", "b", "c"], ["a"])}
    put(store, group("d", 24 * 60 + 30), cluster(24 * 60 + 30))
    assert names(24 * 60 + 31) == {"prod": (["a", "b", "c", "d"], ["a"])}


def test_what_is_gone_is_removed_for_its_age(store: Store) -> None:
    lag = stated("lag", "a/t", 0, group="a", topic="t", partitions=1, lag=5, largest_lag=5, committed=1)
    put(store, group("a", 0), group("b", 0), lag, stated("group", "a", 60))
    with store._begin() as connection:
        prune(connection, schema.text(NOON + timedelta(minutes=30)))
    assert (groups_at(store, 31), groups_at(store, 61)) == (["a", "b"], ["b"])
    with store._begin() as connection:
        prune(connection, schema.text(NOON + timedelta(minutes=90)))
        assert list(connection.scalars(select(schema.facts.c.name))) == ["b"]
