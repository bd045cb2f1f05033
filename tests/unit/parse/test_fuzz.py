"""Whatever is read, nothing crashes, nothing is lost or read twice, and the work grows as the input does.

Work is counted in calls; what a single call costs, the hostile part of `python -m tests.bench` tells.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from random import Random
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.records import Block, RawLine, Record
from engine.parse import assemble, decode_block, unwrap
from tests.bench.hostile import HEAD, SEEDS, kinds, repeated
from tests.unit.parse.reading import FORMATS, documents
from tests.unit.parse.test_excerpts import EXCERPTS
from tests.unit.parse.test_wrapped import DOCUMENTS, OTHERS, WRAPPED

FUZZ_S = float(os.environ.get("TOCSIN_FUZZ_S", "600"))  # of the long one
LINES = [
    *(line.encode() for line in WRAPPED.values()),
    *(line.encode() for line in DOCUMENTS.values()),
    *(line.encode() for line, _ in OTHERS.values()),
    *(example.encode() for document in documents().values() for example in document["examples"]),
    *(line for path in EXCERPTS for line in path.read_bytes().split(b"\n")),
]


def raw(lines: Sequence[bytes]) -> list[RawLine]:
    return [RawLine("f.log", number, line, number + 1) for number, line in enumerate(lines)]


def check(lines: Sequence[bytes]) -> None:
    """Read `lines`; every one of them is in one block, or blank, and every block is at least one event with its text."""
    records = [item for item in unwrap(raw(lines), FORMATS) if isinstance(item, Record)]
    blocks = [item for item in assemble(records, FORMATS) if isinstance(item, Block)]
    held = [record.offset for block in blocks for record in block.records]
    assert len(records) == len(lines)
    assert len(held) == len(set(held))
    dropped = {record.offset for record in records if not record.text.strip()}
    assert set(range(len(lines))) - set(held) <= dropped
    for block in blocks:
        offsets = [record.offset for record in block.records if record.source_id == block.records[0].source_id]
        assert offsets == sorted(offsets)
        assert len(offsets) == len(block.records)
        events = decode_block(block, FORMATS)
        assert events
        assert all(event.message in event.text for event in events), "what a message holds is searched for in the text"


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """Everything is compiled and imported before work is counted."""
    check(LINES)


def mutated(line: bytes, random: Random) -> bytes:
    """Return `line` cut, torn, repeated or spliced with another."""
    at, to = sorted((random.randint(0, len(line)), random.randint(0, len(line))))
    other = random.choice(LINES)
    changes: Sequence[Callable[[], bytes]] = (
        lambda: line,
        lambda: line[at:],
        lambda: line[:to],
        lambda: line[:at] + line[to:],
        lambda: line[:to] + line[at:],
        lambda: line[:at] + random.randbytes(random.randint(0, 8)).replace(b"\n", b"") + line[at:],
        lambda: line[:at] + other[random.randint(0, len(other)) :],
        lambda: random.choice(list(SEEDS.values())) * random.randint(1, 30) + line,
    )
    return random.choice(changes)()


@settings(max_examples=settings().max_examples * 3 // 5)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.binary(max_size=80).map(lambda b: b.replace(b"\n", b""))), max_size=40))
def test_lines_of_any_kind_in_any_order(lines: list[bytes]) -> None:
    check(lines)


@settings(max_examples=settings().max_examples * 3 // 5)
@given(st.integers(0, 2**32))
def test_damaged_lines(seed: int) -> None:
    random = Random(seed)
    check([mutated(random.choice(LINES), random) for _ in range(40)])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(FUZZ_S + 300)
def test_damaged_lines_for_long() -> None:
    until, seed = time.monotonic() + FUZZ_S, 0
    while time.monotonic() < until:
        random = Random(seed)
        check([mutated(mutated(random.choice(LINES), random), random) for _ in range(200)])
        seed += 1
    print(f"{seed * 200} lines")


def work(lines: Sequence[bytes]) -> int:
    """Return how many calls it takes to read `lines`, of functions in Python and in C."""
    calls = 0

    def count(_frame: FrameType, what: str, _argument: object) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    sys.setprofile(count)
    try:
        for block in assemble(unwrap(raw(lines), FORMATS), FORMATS):
            assert isinstance(block, Block)
            decode_block(block, FORMATS)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", [name for name, _ in kinds(1000) if "long lines" not in name])
def test_twice_the_input_is_at_most_twice_the_work(name: str) -> None:
    size = 8_000
    once, twice = (list(dict(kinds(times * size))[name]) for times in (1, 2))
    assert work(twice) <= 2.2 * work(once) + 1000


@pytest.mark.parametrize("name", SEEDS)
def test_a_line_twice_as_long_is_at_most_twice_the_work(name: str) -> None:
    once, twice = ([HEAD, repeated(SEEDS[name], length)] for length in (20_000, 40_000))
    assert work(twice) <= 2.2 * work(once) + 1000
