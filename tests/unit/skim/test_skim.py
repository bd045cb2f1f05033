"""Skimming leaves out nothing that would have been said: a stream that is skimmed says the same as one that is read whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.correlate.bindings import SIGHTINGS
from engine.match.digits import ALIKE
from engine.match.screen import Screen
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Record
from engine.parse import unwrap_line
from engine.ports import Chunk
from engine.skim import skimmer as skim
from engine.skim.lines import lines_of
from engine.skim.skimmer import Skimmer
from engine.spark.slices import SliceFragments, WorkerStages, scan, stages
from tests.rulepack.playing import plan
from tests.unit.spark.test_slices import SAMPLES

pytestmark = pytest.mark.slow

HEADS = [
    "[{}] INFO [GroupMetadataManager brokerId=1] Loading offsets and group metadata from __consumer_offsets-7 (k.c.g)",
    "[{}] INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in 0 milliseconds. (k.c.g)",
    "[{}] INFO Rolled new log segment at offset 7 in 3 ms. (kafka.log.Log)",
    "{} INFO [Consumer clientId=c, groupId=billing] Discovered group coordinator b:9092 (o.a.k.c)",
    "[{}] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-0 (k.R)",
    "[{}] WARN [SocketServer brokerId=1] Unexpected error from /10.0.0.1; closing connection (o.a.k.c.n.S)",
    "[{}] WARN 파티션을 읽을 수 없습니다 é (com.example.Consumer)",
]
BELOW = [
    "",
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    " the min.isr requirement of 2 for partition a-0",
    "\tat kafka.server.ReplicaManager.append(ReplicaManager.scala:1)",
    "\t... 3 more",
    "\tretries = 3",
    "Caused by: java.lang.IllegalStateException: no",
    "worker-1  | [2022-10-05 17:05:04,001] ERROR WorkerSourceTask{id=c-0} failed to send record to t: (o.a.k.c)",
    '{"level": "ERROR", "message": "[Consumer clientId=c, groupId=g] no"}',
    "  2022-10-05 17:09:00,000 INFO behind blanks",
    "\x1b[31mred\x1b[0m",
    "windows\r",
]


@cache
def compiled() -> WorkerStages:
    return stages(plan())


def said(
    data: bytes, skimmed: bool, pieces: int = 1
) -> tuple[list[Match | ActivitySpan | SliceFragments], Counter[tuple[object, ...]]]:
    """What a slice of `data` says in order, without naming lines; and those, as often as counts."""
    lines = data.splitlines(keepends=True)
    step = -(-len(lines) // pieces) or 1
    chunks, offset = [], 0
    for at in range(0, len(lines), step):
        text = b"".join(lines[at : at + step])
        chunks.append(Chunk("b.log", offset, text, at + 1, None, {"cluster": "x"}))
        offset += len(text)
    before = skim.ENOUGH_LINES
    skim.ENOUGH_LINES = 2 if skimmed else 1 << 30
    try:
        found = list(scan(chunks, compiled()))
    finally:
        skim.ENOUGH_LINES = before
    named = [each for each in found if isinstance(each, Match) and each.rule_id.endswith("/names")]
    counts = Counter((each.rule_id, *each.captures.items()) for each in named)
    return [each for each in found if each not in named], Counter({key: min(n, SIGHTINGS) for key, n in counts.items()})


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.log")), ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_sample_says_the_same_when_it_is_skimmed(path: Path) -> None:
    data = path.read_bytes()
    assert said(data, skimmed=True) == said(data, skimmed=False)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([0, 10, 45, 200]), st.sampled_from([0.0, 0.02, 0.3]))
def test_any_stream_says_the_same_when_it_is_skimmed(seed: int, pieces: int, pause: int, odd: float) -> None:
    data = "\n".join(islice(stream(Random(seed), pause, odd), 80)).encode() + b"\n"
    assert said(data, skimmed=True, pieces=pieces) == said(data, skimmed=False)


def stream(random: Random, pause: int, odd: float) -> Iterable[str]:
    """Lines of one source: `pause` seconds at most between two events, `odd` of them out of order or in another layout."""
    at = 0.0
    while True:
        at += random.uniform(0, pause)
        moment = max(at - 90, 0) if random.random() < odd else at
        yield random.choice(HEADS).format(stamp(moment))
        for _ in range(random.choice([0, 0, 0, 1, 3])):
            yield random.choice(BELOW if random.random() < odd else BELOW[:6])


def stamp(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1000), 60_000)
    return f"2022-10-05 {10 + minutes // 60}:{minutes % 60:02d}:{rest // 1000:02d},{rest % 1000:03d}"


def test_quiet_lines_are_left_out_and_the_rest_keeps_its_place() -> None:
    quiet = [HEADS[2].format(stamp(at / 10)) for at in range(300)]
    data = "\n".join([*quiet, HEADS[4].format(stamp(40)), BELOW[1], *quiet[:1]]).encode() + b"\n"
    chunk = Chunk("b.log", 1000, data, 7, None, {})
    read = list(Skimmer(compiled().sight).read([chunk]))
    assert len(read) < 10
    everything = {raw.offset: unwrap_line(raw, compiled().formats) for raw in chunk.lines()}
    records = [each for each in read if isinstance(each, Record)]
    assert all(everything[record.offset] == record for record in records)
    assert sum("Error processing append" in record.text for record in records) == 1


def test_a_stream_of_naming_lines_is_read_until_it_binds() -> None:
    data = "\n".join(HEADS[0].format(stamp(at / 10)) for at in range(300)).encode() + b"\n"
    read = list(Skimmer(compiled().sight).read([Chunk("b.log", 0, data, 1)]))
    assert 2 <= len(read) < 10


def test_every_shipped_rule_has_a_sign() -> None:
    assert compiled().sight.screen.complete


def test_without_hyperscan_the_same_lines_have_hits() -> None:
    signs = [each.signs for each in compiled().matcher._sought]
    with_it, without = Screen(signs, database=True), Screen(signs, database=False)
    for path in sorted(SAMPLES.rglob("*.log"))[::4]:
        data = path.read_bytes().decode("utf-8", "replace").encode("ascii", "replace")
        assert numbers(data, with_it) == numbers(data, without)


def numbers(data: bytes, screen: Screen) -> Sequence[int]:
    """The lines of `data` in which something may be borne."""
    return [number for number, _ in screen.bearing(data.translate(ALIKE), lines_of(data).starts.tolist())]
