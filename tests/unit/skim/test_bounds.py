"""A text in which stamps are out of bounds says the same when it is skimmed: such lines are read, whatever the others are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cli.triage import triage
from engine.columns import bounded as columns
from engine.columns import reading
from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, Progress
from engine.ports import Chunk
from engine.skim import alike, documents, skimmer
from engine.skim.bounds import out_of_bounds
from tests.unit.columns.test_bounded import EVENTS, ODD, STAMPS, naive, rules, told
from tests.unit.skim.test_skim import compiled
from tests.wrapping import CHAINS, wrapped

pytestmark = pytest.mark.slow

INGESTED = datetime(2022, 10, 5, 18, tzinfo=UTC)
DAYS = ("0001-01-01", "1970-01-01", "1989-12-31", "2022-10-06", "2022-10-07", "2100-12-31", "9999-12-31")
JSON = '{{"@timestamp": "{stamp}", "level": "{level}", "message": "{text}", "logger": "kafka.log.Log"}}'


@pytest.fixture(autouse=True)
def small_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COLUMNS_FROM_BYTES", 0)
    monkeypatch.setattr(reading, "ENOUGH", 2)
    monkeypatch.setattr(skimmer, "ENOUGH_LINES", 2)
    monkeypatch.setattr(alike, "LEARNT_AFTER", 2)
    monkeypatch.setattr(documents, "LEARNT_AFTER", 2)


def log(random: Random, layout: str, share: float) -> Iterator[str]:
    """Lines of one layout, some of them of another day."""
    for second in range(200):
        stamp = layout.format(clock=f"17:{second // 60:02}:{second % 60:02}", ms=random.randrange(1000))
        if random.random() < share:
            stamp = stamp.replace("2022-10-05", random.choice(DAYS))
        yield from (stamp + random.choice(ODD[:2] if random.random() < 0.3 else EVENTS)).split("\n")


def of_documents(random: Random, share: float) -> Iterator[str]:
    for second in range(200):
        day = random.choice(DAYS) if random.random() < share else "2022-10-05"
        yield JSON.format(
            stamp=f"{day}T17:{second // 60:02}:{second % 60:02}.{random.randrange(1000):03}Z",
            level=random.choice(("INFO", "ERROR")),
            text=f"Rolled new log segment at offset {random.randrange(100)}",
        )


def compared(data: bytes, labels: dict[str, str], taken: datetime | None = INGESTED) -> None:
    items = [Chunk("a.log", 0, data, 1, taken, labels), Progress("a.log", len(data), len(data), caught_up=True)]
    assert told(triage(items, rules(), [])) == naive(items)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32),
    st.sampled_from(STAMPS),
    st.sampled_from([0.02, 0.2, 0.9]),
    st.sampled_from([None, *CHAINS]),
    st.sampled_from([{}, {"timezone": "Asia/Seoul"}, {EARLIEST_LABEL: "2022-10-05T17:01:00+00:00", AHEAD_LABEL: "0"}]),
    st.sampled_from([INGESTED, INGESTED - timedelta(minutes=59), None, datetime(1970, 1, 2, tzinfo=UTC)]),
)
def test_a_log_with_impossible_stamps_shows_the_same_when_it_is_skimmed(
    seed: int, layout: str, share: float, chain: tuple[str, ...] | None, labels: dict[str, str], taken: datetime | None
) -> None:
    random = Random(seed)
    lines = log(random, layout, share)
    compared("\n".join(lines if chain is None else wrapped(lines, chain, random, 0.0)).encode(), labels, taken)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.2, 0.9]))
def test_documents_with_impossible_stamps_show_the_same_when_they_are_skimmed(seed: int, share: float) -> None:
    compared("\n".join(of_documents(Random(seed), share)).encode(), {})


class _Records:
    """Lines of a topic, each taken a minute after the one before."""

    def __init__(self, size: int) -> None:
        self._size = size

    def place(self, at: int) -> tuple[int, datetime | None]:
        return at // self._size, INGESTED + timedelta(minutes=at // self._size)

    def earliest(self) -> datetime | None:
        return INGESTED

    def origin(self, at: int) -> str:
        return ""


def test_each_line_of_a_topic_is_bounded_by_when_it_was_taken() -> None:
    chunk = Chunk("t", 0, b"x" * 1000, stream="t-0", end=10, records=[(0, _Records(100))])
    minutes = np.arange(10)
    at_us = np.array([int((INGESTED + timedelta(minutes=int(m), seconds=250)).timestamp()) * 1_000_000 for m in minutes])
    taken: Callable[[int], datetime | None] = lambda number: chunk.place(number * 100)[1]  # noqa: E731
    assert not out_of_bounds(at_us, [chunk], True, taken).any()
    at_us[7] += 100_000_000
    assert np.flatnonzero(out_of_bounds(at_us, [chunk], True, taken)).tolist() == [7]


def test_what_is_in_bounds_is_still_left_out() -> None:
    """The bounds cost nothing where no stamp is out of them: a log of now, in local time or in UTC, is not read for it."""
    left_out = 0
    for layout in STAMPS:
        rows = [layout.format(clock=f"17:{n // 60:02}:{n % 60:02}", ms=n) + EVENTS[0] for n in range(300)]
        bounded, unbounded = skimmer.Skimmer(compiled().sight), skimmer.Skimmer(compiled().sight)
        for skimming, taken in ((bounded, datetime(2022, 10, 5, 17, 5, tzinfo=UTC)), (unbounded, None)):
            list(skimming.read([Chunk("a.log", 0, "\n".join(rows).encode(), 1, taken)]))
        assert bounded.left_out == unbounded.left_out, layout
        left_out += bounded.left_out
    assert left_out > 1000
