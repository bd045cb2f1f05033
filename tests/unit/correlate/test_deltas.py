"""State is written as a whole now and then, and piece by piece in between; who reads it knows what was known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from engine.correlate import Correlator, StateCache
from engine.correlate.deltas import SMALL
from engine.model.incidents import Finding
from engine.model.matches import Match
from engine.model.records import Progress
from engine.model.rules import Clear, Plan
from tests.building import counting, match, plan, seen, signature, tick
from tests.unit.correlate.brokers import DIES, PLAN, beats, cluster, complaint, read
from tests.unit.correlate.saying import in_batches, together

HOT = plan(
    signature("seen", entity=("topic",), clear=Clear(0, 60.0)),
    signature("once", entity=("topic",), distinct=("n",), collapse_s=5.0),
    counting("often", ["seen", "once"], 3, 30.0, entity=("topic",), clear=Clear(1, 30.0)),
)
WHOLE = "seen"


def pieces(state: dict[str, str], rule: str = WHOLE) -> list[str]:
    return [name for name in state if name.startswith("delta:") and name.endswith(f":{rule}")]


def take(state: dict[str, str], items: Sequence[object], made: Plan = HOT) -> None:
    correlator = Correlator(made, "default", state)
    for item in items:
        correlator.observe(item)  # type: ignore[arg-type]
    correlator.flush()


def storm(begin: int, count: int) -> list[object]:
    return [match("seen", begin + number * 90, topic="xyz"[number % 3], n=number) for number in range(count)]


def known(state: dict[str, str], rule: str = WHOLE) -> Any:
    """Return what is known of a rule, as it would be written as a whole."""
    correlator = Correlator(HOT, "default", dict(state))
    return json.loads(correlator._state_of(rule).encode())


def test_a_batch_writes_what_came_and_leaves_the_rest_as_it_was() -> None:
    state: dict[str, str] = {}
    take(state, storm(0, 90))
    before = dict(state)
    take(state, [match("seen", 10_000, topic="x")])
    assert state[WHOLE] == before[WHOLE]
    (piece,) = pieces(state)
    assert len(state[piece]) < 1000 < SMALL < len(state[WHOLE])


def test_a_whole_is_written_when_pieces_are_as_much_or_too_many_and_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, str] = {}
    take(state, storm(0, 90))
    whole = state[WHOLE]
    take(state, storm(10_000, 300))
    assert state[WHOLE] != whole
    assert pieces(state) == []
    monkeypatch.setattr("engine.correlate.deltas.MOST_DELTAS", 3)
    for number in range(5):
        assert len(pieces(state)) == number % 4
        take(state, [match("seen", 100_000 + number, topic="x")])


def test_what_is_taken_back_or_forgotten_is_in_no_piece() -> None:
    state: dict[str, str] = {}
    lines = storm(0, 90)
    take(state, [tick(0), *lines])
    correlator = Correlator(HOT, "default", state)
    correlator.retract(lines[-1])  # type: ignore[arg-type]
    correlator.flush()
    assert pieces(state) == []
    assert len(known(state)["table"]["rows"]) == 3
    take(state, [seen("a.log", 20_000, 20_000), match("seen", 20_000, topic="new"), tick(timedelta(days=2).total_seconds())])
    assert pieces(state) == []
    assert [row["entity"][0][1] for row in known(state)["table"]["rows"]] == ["new"]


@pytest.fixture
def folding_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.correlate.series.KEPT", 5)
    monkeypatch.setattr("engine.correlate.series.STRETCHES", 4)
    monkeypatch.setattr("engine.correlate.deltas.SMALL", 0)


def batches(random: Random) -> Iterator[list[object]]:
    """Yield batches in which time goes on, with lines that come late, twice or of something that was counted before."""
    lines: list[object] = []
    for number in range(25):
        begin = number * 400.0
        new = [
            match(
                random.choice(("seen", "once")),
                begin + random.randrange(-500, 400),
                topic=random.choice("xyz"),
                n=random.randrange(200),
            )
            for _ in range(random.randrange(12))
        ]
        lines += new
        yield [
            *new,
            *random.choices(lines, k=min(3, len(lines))),
            seen("clock", begin, begin + random.randrange(400)),
            tick(begin),
        ]


@pytest.mark.usefixtures("folding_early")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_what_is_said_and_known_is_the_same_for_who_reads_it_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(batches(Random(seed)))
    assert in_batches(every, HOT, True) == in_batches(every, HOT, False)
    in_pieces: dict[str, str] = {}
    in_one: dict[str, str] = {}
    for batch in every:
        take(in_pieces, batch)
    monkeypatch.setattr("engine.correlate.deltas.SMALL", 1 << 30)
    for batch in every:
        take(in_one, batch)
    assert any(name.startswith("delta:") for name in in_pieces)
    for rule in ("seen", "once", "often"):
        pieced, whole = (known(state, rule) for state in (in_pieces, in_one))
        for each in (pieced, whole):
            each["timers"].sort()
            each["emissions"].sort()
            each["table"]["rows"].sort(key=str)
        assert pieced == whole


@pytest.mark.usefixtures("folding_early")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_batches_done_by_either_of_two_workers_and_done_again_say_the_same_in_the_end(seed: int) -> None:
    random, every = Random(seed), list(batches(Random(seed)))
    workers = [StateCache(), StateCache()]
    state: dict[str, str] = {}
    said: list[Finding] = []
    for batch in every:
        before = dict(state)
        for again in range(random.choice((1, 1, 2))):
            if again:
                state = before
            if random.random() < 0.1:
                workers[0] = StateCache()
            correlator = Correlator(HOT, "default", state, random.choice(workers))
            for item in batch:
                correlator.observe(item)  # type: ignore[arg-type]
            said += correlator.flush()
    assert together(said) == in_batches(every, HOT, False)


def test_a_silence_is_told_by_who_knows_the_members_from_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [item for item in (*cluster(), complaint(DIES + 60), *beats("1", 65, 65)) if not isinstance(item, Progress)]
    lines.sort(key=lambda item: item.at if isinstance(item, Match) else item.first)
    every = [[*batch, *read("1", "2", "3")] for batch in (lines[n : n + 5] for n in range(0, len(lines), 5))]
    whole = in_batches(every, PLAN, False)
    monkeypatch.setattr("engine.correlate.deltas.SMALL", 0)
    assert in_batches(every, PLAN, True) == whole
    assert [alert.status for key, alerts in whole.items() for alert in alerts if key[1] == "silent"] == ["resolved"]


def test_what_came_is_not_kept_twice_where_nothing_is_stored() -> None:
    correlator = Correlator(PLAN, "default")
    for item in (*cluster(), *(complaint(second) for second in range(500))):
        correlator.observe(item)  # type: ignore[arg-type]
    correlator.flush()
    moments: Any = correlator._state_of("silent").snapshot()["statements"]
    assert (moments._added, len(moments._moments)) == ({}, 1)
    hot = Correlator(HOT, "default")
    for item in storm(0, 500):
        hot.observe(item)  # type: ignore[arg-type]
    hot.flush()
    table: Any = hot._state_of("seen").snapshot()["table"]
    assert (table._added, len(table._series)) == ({}, 3)


def test_state_of_another_layout_cannot_be_read() -> None:
    state: dict[str, str] = {}
    take(state, storm(0, 9))
    head = json.loads(state["head"])
    del head["layout"]
    with pytest.raises(msgspec.DecodeError):
        Correlator(HOT, "default", state | {"head": json.dumps(head)})
