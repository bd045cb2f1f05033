"""What stays in a worker is searched for garbage once; what becomes garbage later is still found."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from engine.spark import garbage


class Cycle:
    """Only a collection ends it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _a_collector_of_its_own() -> Iterator[None]:
    callbacks = list[Any](gc.callbacks)
    gc.collect()
    yield
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def _collections(monkeypatch: pytest.MonkeyPatch, *, slow: bool) -> None:
    monkeypatch.setattr(garbage, "SLOW_S", 0.0 if slow else 3600.0)
    garbage.keep_what_stays()


def test_what_is_left_after_a_slow_collection_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=True)
    kept = [Cycle() for _ in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() > len(kept)


def test_quick_collections_set_nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=False)
    gc.collect()
    assert gc.get_freeze_count() == 0


def test_nor_do_those_of_young_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=True)
    gc.collect(1)
    assert gc.get_freeze_count() == 0


def test_garbage_that_comes_later_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=True)
    gc.collect()
    gone = weakref.ref(Cycle())
    gc.collect()
    assert gone() is None


def test_what_was_set_aside_and_is_garbage_now_is_collected_once_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=True)
    plan = Cycle()
    gone = weakref.ref(plan)
    gc.collect()
    del plan
    gc.collect()
    assert gone() is not None
    garbage.keep_what_stays()
    gc.collect()
    assert gone() is None


def test_being_asked_again_does_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    _collections(monkeypatch, slow=True)
    before = len(gc.callbacks)
    garbage.keep_what_stays()
    assert len(gc.callbacks) == before
