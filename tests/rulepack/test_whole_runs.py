"""Whole runs over damaged lines and stamps: nothing ends them, and every line is judged or in quarantine."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.cli.triage import triage
from engine.columns import by_line, reading
from engine.incident import group
from engine.match import redact
from engine.model.incidents import Evidence, NotEvaluated, Roster, Verdict
from engine.model.quarantine import DeadLetter
from engine.model.records import Block, Progress, Tick
from engine.parse import decode_block
from engine.ports import Chunk
from engine.quarantine import Quarantine
from engine.spark import slices
from engine.spark.combining import combine
from engine.spark.rows import BatchRow, Scanned, received, sent
from engine.spark.scope import ScopeState
from engine.spark.slices import WorkerStages, scan, stages
from engine.store import Store
from engine.store.store import BatchId
from tests.building import at
from tests.damaged import damaged, stamped
from tests.poison import IN_CORRELATE, IN_GROUP, IN_MATCH, poisoned
from tests.rulepack.playing import plan

pytestmark = pytest.mark.slow

FUZZ_S = float(os.environ.get("TOCSIN_FUZZ_S", "600"))  # of the long one
WORDS = (IN_MATCH, IN_CORRELATE, IN_GROUP, f"{IN_GROUP}-SYMPTOM")
FAULTY = b"\xf0\x9f\x94\xa5"  # a line that bears it cannot be decoded by a decoder that is broken on purpose


@cache
def compiled() -> WorkerStages:
    return stages(poisoned(plan()))


def lines_of(random: Random, number: int) -> list[bytes]:
    found = []
    for _ in range(number):
        line = stamped(damaged(random), random)
        if random.random() < 0.05:
            line += b" " + random.choice(WORDS).encode()
        found.append(line + FAULTY if random.random() < 0.02 else line)
    return found


class _Decoded:
    """Stands for decode_block: fails on FAULTY, notes the lines of these and of what it takes otherwise."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()
        self.failed: set[tuple[str, int]] = set()

    def __call__(self, block: Block, formats: Any) -> Any:
        lines = {(record.source_id.partition("#")[0], record.offset) for record in block.records}
        if any(FAULTY.decode() in record.text for record in block.records):
            self.failed |= lines
            raise ArithmeticError("a fault of ours")
        self.lines |= lines
        return decode_block(block, formats)


class Run:
    """A job without Spark: slices of two files in batches, state as text, incidents in a real store."""

    def __init__(self, folder: Path) -> None:
        self.state: dict[str, str] = {}
        self.store = Store.open(f"sqlite:///{folder}/tocsin.db")
        self.letters: list[DeadLetter] = []
        self.lines = self._batches = 0

    def batch(self, chunks: list[Chunk], last: bool) -> None:
        self._batches += 1
        items: list[BatchRow] = [item for chunk in chunks for item in combine(scan([chunk], compiled()))]
        items.append(Tick(at(self._batches)))
        items += [Progress(chunk.source_id, 1, 1, True, closed=last) for chunk in chunks]
        crossed = [received(kind, body) for _, kind, body in (sent("default", item) for item in items)]
        found = ScopeState(compiled(), "default", self.state, bounded=last).take(crossed)
        passed = [received(kind, body) for _, kind, body in (sent("default", item) for item in found)]
        findings = [item for item in passed if isinstance(item, Verdict | Evidence | Roster | NotEvaluated)]
        aside = Quarantine(redact)
        with self.store.batch(BatchId("q", self._batches)) as ledger:
            list(group(findings, compiled().plan, ledger, aside))
            letters = [item for item in (*passed, *aside.taken()) if isinstance(item, DeadLetter)]
            ledger.put_quarantined(letters, at(0))
        self.letters += letters
        self.lines += sum(item.lines for item in passed if isinstance(item, Scanned))


def cut(source: str, lines: list[bytes], random: Random) -> list[Chunk]:
    begins = sorted({0, *(random.randrange(len(lines)) for _ in range(3))})
    found, offset = [], 0
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        data = b"".join(line + b"\n" for line in lines[begin:end])
        found.append(Chunk(source, offset, data, begin + 1, random.choice([None, at(0), at(10**8)])))
        offset += len(data)
    return found


def check(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int = 120) -> None:
    random = Random(seed)
    texts = {name: lines_of(random, number) for name in ("a.log", "b.log")}
    chunks = {name: cut(name, lines, random) for name, lines in texts.items()}
    answer = triage([each for some in chunks.values() for each in some], compiled().plan, [])
    assert answer.stats.lines == 2 * number
    assert all(letter.rule_id.startswith("poison") for letter in answer.quarantined), answer.quarantined
    decoded, job = _Decoded(), Run(folder)
    with monkeypatch.context() as patch:
        for module in (slices, by_line):
            patch.setattr(module, "decode_block", decoded)
        patch.setattr(reading, "ENOUGH", sys.maxsize)  # columns decide classes of events, and decode_block does not see each
        for turn in range(4):
            batch = [some[turn] for some in chunks.values() if turn < len(some)]
            job.batch(batch, last=False)
        job.batch([Chunk(name, sum(len(c.data) for c in some), b"") for name, some in chunks.items()], last=True)
    job.store.close()
    assert job.lines == 2 * number
    for letter in job.letters:
        assert letter.error == "ArithmeticError: a fault of ours" or letter.rule_id.startswith("poison"), letter
    blank = sum(not line.strip() for lines in texts.values() for line in lines)
    most = 2 * number
    assert most - blank - _textless(texts) <= len(decoded.lines | decoded.failed) <= most
    aside: dict[tuple[str, int], int] = {}  # an event that goes on after it was judged is put aside again, with more lines
    for letter in job.letters:
        place = letter.source_id, letter.offset
        aside[place] = max(aside.get(place, 0), letter.lines)
    assert sum(aside.values()) == len(decoded.failed)


def _textless(texts: dict[str, list[bytes]]) -> int:
    """How many lines are nothing but wrapper, so that no event begins at them."""
    from engine.model.records import RawLine
    from engine.parse import unwrap_line

    raws = (RawLine("a", 0, line) for lines in texts.values() for line in lines if line.strip())
    return sum(not unwrap_line(raw, compiled().formats).text.strip() for raw in raws)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_over_damaged_lines_ends_and_its_counts_add_up(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(seed, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(FUZZ_S + 600)
def test_runs_over_damaged_lines_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until, seed = time.monotonic() + FUZZ_S, 100
    while time.monotonic() < until:
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(seed, folder, monkeypatch, number=400)
        seed += 1
    print(f"{(seed - 100) * 800} lines")
