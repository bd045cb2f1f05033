"""A stream cut into slices anywhere says the same as the stream in one piece: matches, spans, nothing lost, nothing twice."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.files import find, read_path
from engine.codec import dumps, loads
from engine.columns import reading
from engine.correlate.bindings import SIGHTINGS
from engine.match.activity import ActivityTracker
from engine.model.matches import SEEN_GAP_S, ActivitySpan, Match
from engine.model.records import Block, Progress, RawLine
from engine.parse import assemble, unwrap
from engine.ports import Chunk
from engine.spark import slices
from engine.spark.scope import carried_progress
from engine.spark.slices import EarlyMatches, Scanned, SliceFragments, WorkerStages, matched, scan, stages
from engine.spark.streams import Retraction, Streams, StreamState
from tests.rulepack.playing import plan
from tests.wrapping import CHAINS, mingled, wrapped

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[3] / "samples"
INGESTED = datetime(2022, 10, 6, tzinfo=UTC)
ERROR = "[2022-10-05 17:05:01,@@@] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-0 (k.R)"
QUIET = "[2022-10-05 17:05:01,@@@] INFO Rolled new log segment at offset 7 in 3 ms. (kafka.log.Log)"
LINES = [  # @@@ becomes the line's number: equal lines at equal times would be one event
    ERROR,
    "[2022-10-05 17:07:03,@@@] INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in 0 milliseconds. (k.c.g)",
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    " the min.isr requirement of 2 for partition a-0",
    "\tat kafka.server.ReplicaManager.append(ReplicaManager.scala:1)",
    "Caused by: java.lang.IllegalStateException: no",
    "plain words",
    "",
    '{"name": "c", "connector": {"state": "RUNNING", "worker_id": "w:8083"},',
    ' "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": "java.lang.Error: x\\n\\tat a.b(C.java:1)"}]}',
    "worker-1  | [2022-10-05 17:05:04,@@@] ERROR [c|task-0] WorkerSourceTask{id=c-0} failed to send record to t: (o.a.k.c)",
    "worker-1  | org.apache.kafka.common.errors.RecordTooLargeException: The message is 11 bytes when serialized which is"
    " larger than 10, which is the value of the max.request.size configuration.",
    "Dumping /var/lib/kafka/account_event-0/00000000000000000000.log",
    "baseOffset: 7 lastOffset: 7 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1"
    " partitionLeaderEpoch: 0 isTransactional: false isControl: false position: 0 CreateTime: 1664956976908"
    " size: 80 magic: 2 compresscodec: none crc: 1 isvalid: true",
    "| offset: 7 CreateTime: 1664956976908 keySize: -1 valueSize: 12 sequence: -1 headerKeys: []",
]
SAID = [line.partition("] ")[2] for line in LINES[:2]] + [
    "INFO Rolled new log segment at offset 7 in 3 ms. (kafka.log.Log)",
    "INFO [GroupCoordinator 1]: Stabilized group billing generation 5 (kafka.coordinator.group.GroupCoordinator)",
    "WARN slow (com.example.Consumer)",
]


@cache
def shipped() -> WorkerStages:
    return stages(plan())


def whole(data: bytes) -> list[Match | ActivitySpan]:
    """What the reference pipeline says of `data`."""
    formats, heard = shipped().formats, ActivityTracker()
    blocks = assemble(unwrap(Chunk("x.log", 0, data, 1, INGESTED).lines(), formats), formats)
    said = [item for block in blocks if isinstance(block, Block) for item in matched(block, shipped(), heard)]
    return [*said, *heard.close()]


def cut(data: bytes, places: Sequence[int]) -> list[Chunk]:
    """The same lines as chunks that begin at these line numbers (0-based)."""
    lines = data.splitlines(keepends=True)
    borders = sorted({0, len(lines), *(place % (len(lines) + 1) for place in places)})
    offsets = [sum(map(len, lines[:at])) for at in borders]
    ranges = zip(pairwise(borders), offsets, strict=False)
    return [Chunk("x.log", offset, b"".join(lines[start:end]), start + 1, INGESTED) for (start, end), offset in ranges]


def joined(batches: Iterable[Sequence[Chunk]], settle: bool = False) -> list[Match | ActivitySpan]:
    """What slices say, one chunk a slice, the slices of a batch in any order; the state survives as JSON only."""
    said: list[Match | ActivitySpan] = []
    states: dict[str, StreamState] = {}
    for batch in batches:
        items = [item for chunk in batch for item in scan([chunk], shipped())]
        streams = Streams(shipped(), {name: loads(dumps(state), StreamState) for name, state in states.items()})
        edges = [loads(dumps(item), SliceFragments) for item in items if isinstance(item, SliceFragments)]
        said += [item for item in items if isinstance(item, Match | ActivitySpan)]
        for told in streams.join(edges):
            _hear(said, told)
        if settle:
            for told in streams.settle("x.log"):
                _hear(said, told)
        states = streams.states
    for told in Streams(shipped(), states).close("x.log"):
        _hear(said, told)
    return said


def _hear(said: list[Match | ActivitySpan], told: Match | ActivitySpan | Retraction) -> None:
    if isinstance(told, Retraction):
        said[:] = [item for item in said if not (isinstance(item, Match) and item in told.matches)]
    else:
        said.append(told)


def matches(items: Iterable[Match | ActivitySpan]) -> list[Match]:
    return sorted(
        (item for item in items if isinstance(item, Match)),
        key=lambda m: (m.source_id, m.number, m.rule_id, m.event_id, repr(m.captures)),
    )


def spans(items: Iterable[Match | ActivitySpan]) -> list[tuple[str, datetime, datetime]]:
    """The union of all spans: those less than SEEN_GAP_S apart are one."""
    merged: list[tuple[str, datetime, datetime]] = []
    for one in sorted((s.source_id, s.first, s.last) for s in items if isinstance(s, ActivitySpan)):
        if merged and merged[-1][0] == one[0] and (one[1] - merged[-1][2]).total_seconds() < SEEN_GAP_S:
            merged[-1] = (one[0], merged[-1][1], max(merged[-1][2], one[2]))
        else:
            merged.append(one)
    return merged


def assert_same(data: bytes, found: list[Match | ActivitySpan]) -> None:
    expected = whole(data)
    assert matches(found) == matches(expected)
    assert spans(found) == spans(expected)


def text(lines: Sequence[str]) -> bytes:
    return "".join(line.replace("@@@", f"{number:03}") + "\n" for number, line in enumerate(lines)).encode()


texts = st.lists(st.sampled_from(LINES), min_size=1, max_size=25).map(text)
places = st.lists(st.integers(0, 25), max_size=8)


@settings(max_examples=60, deadline=None)
@given(texts, places, st.randoms(use_true_random=False))
def test_slices_of_one_batch_join_in_any_order(data: bytes, where: list[int], chance: random.Random) -> None:
    chunks = cut(data, where)
    chance.shuffle(chunks)
    assert_same(data, joined([chunks]))


@settings(max_examples=60, deadline=None)
@given(texts, places, st.booleans())
def test_slices_of_many_batches_join_even_if_open_ends_were_matched_too_early(
    data: bytes, where: list[int], settle: bool
) -> None:
    assert_same(data, joined([[chunk] for chunk in cut(data, where)], settle))


@settings(max_examples=60, deadline=None)
@given(texts, places, st.booleans())
def test_each_event_is_counted_once_wherever_slices_begin(data: bytes, where: list[int], settle: bool) -> None:
    blocks = assemble(unwrap(Chunk("x.log", 0, data, 1, INGESTED).lines(), shipped().formats), shipped().formats)
    streams, events = Streams(shipped(), {}), 0
    for chunk in cut(data, where):
        items = list(scan([chunk], shipped()))
        events += sum(item.events for item in items if isinstance(item, Scanned))
        list(streams.join(item for item in items if isinstance(item, SliceFragments)))
        list(streams.settle("x.log") if settle else ())
    list(streams.close("x.log"))
    assert events + streams.finished == sum(isinstance(block, Block) for block in blocks)


@pytest.mark.parametrize("path", find([str(SAMPLES)]).files, ids=lambda path: str(Path(path).relative_to(SAMPLES)))
def test_every_sample_says_the_same_in_slices_of_seven_lines(path: str) -> None:
    data = b"".join(line.value + b"\n" for line in read_path(path) if isinstance(line, RawLine))
    assert_same(data, joined([[chunk] for chunk in cut(data, range(0, data.count(b"\n"), 7))], settle=True))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places, st.randoms(use_true_random=False))
def test_slices_of_a_storm_say_the_same_in_columns(
    monkeypatch: pytest.MonkeyPatch, where: list[int], chance: random.Random
) -> None:
    monkeypatch.setattr(reading, "ENOUGH", 2)
    storm = [line.replace("a-0", f"a-{chance.randrange(9)}") for _ in range(12) for line in (ERROR, *LINES[2:5], QUIET)]
    data = text(storm)
    assert_same(data, joined([[chunk] for chunk in cut(data, [3 * place for place in where])]))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(CHAINS), min_size=1, max_size=3),
    st.sampled_from([0, 10, 59, 200]),
    st.sampled_from([0.0, 0.03, 0.3]),
    st.lists(st.integers(0, 100), max_size=6),
    st.booleans(),
)
def test_slices_of_wrapped_logs_say_the_same_in_columns(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    behind: list[tuple[str, ...]],
    pause: int,
    odd: float,
    where: list[int],
    settle: bool,
) -> None:
    chance = random.Random(seed)
    histories = [wrapped(history(chance, pause), chain, chance, odd) for chain in behind]
    data = "".join(f"{row}\n" for row in islice(mingled(histories, chance), 80)).encode()
    slices = [[chunk] for chunk in cut(data, where)]
    monkeypatch.setattr(reading, "ENOUGH", len(data))
    expected = joined(slices, settle)  # line by line: a border within the parts of one line may hide where it ends
    monkeypatch.setattr(reading, "ENOUGH", 2)
    found = joined(slices, settle)
    assert [match for match in matches(found) if not names(match)] == [match for match in matches(expected) if not names(match)]
    assert spans(found) == spans(expected)
    assert sayings(found) == sayings(expected)


def history(chance: random.Random, pause: int) -> Iterator[str]:
    """Lines of a source, `pause` seconds at most between two events."""
    at = datetime(2022, 10, 5, 17)
    while True:
        at += timedelta(milliseconds=chance.randrange(pause * 1000 + 1))
        yield f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] {chance.choice(SAID)}"
        for _ in range(chance.choice([0, 0, 0, 1, 3])):
            yield chance.choice(LINES[2:])


def names(match: Match) -> bool:
    return match.rule_id.endswith("/names")


def sayings(items: Iterable[Match | ActivitySpan]) -> set[tuple[str, str, tuple[object, ...], bool]]:
    """What sources name themselves, and whether they do so often enough to be believed."""
    told = Counter((m.source_id, m.rule_id, tuple(m.captures.values())) for m in matches(items) if names(m))
    return {(*key, count >= SIGHTINGS) for key, count in told.items()}


def test_lost_lines_end_what_was_open() -> None:
    first, _, last = cut(text([ERROR, "lost", LINES[2]]), [1, 2])
    found = joined([[first], [last]])
    assert [m.number for m in matches(found)] == [m.number for m in matches([*whole(first.data), *joined([[last]])])]


def test_an_open_end_is_matched_at_the_second_tick_and_once() -> None:
    streams = Streams(shipped(), {})
    (chunk,) = cut(text([ERROR, LINES[2]]), [])
    list(streams.join(edges(scan([chunk], shipped()))))
    assert list(streams.tick()) == []
    assert matches(streams.tick()) != []
    assert list(streams.tick()) == []
    assert list(streams.close("x.log")) == []


def test_a_slice_counts_what_it_read() -> None:
    (chunk,) = cut(b"a\nb\n", [])
    assert [item for item in scan([chunk], shipped()) if isinstance(item, Scanned)] == [Scanned("x.log", 2, 4, events=1)]


def test_a_slice_knows_its_newest_event_time() -> None:
    stamps = ("2022-10-05 12:00:03,000", "2022-10-05 12:00:07,000", "2022-10-05 12:00:01,000", "2022-10-05 12:00:02,000")
    text = "".join(f"[{stamp}] INFO hello (kafka.server.KafkaServer)\n" for stamp in stamps)
    (chunk,) = cut(text.encode(), [])
    (scanned,) = (item for item in scan([chunk], shipped()) if isinstance(item, Scanned))
    assert scanned.newest == datetime(2022, 10, 5, 12, 0, 7, tzinfo=UTC)


def test_a_slice_of_one_line_knows_its_time_too() -> None:
    (chunk,) = cut(b"[2022-10-05 12:00:03,000] INFO hello (kafka.server.KafkaServer)\n", [])
    (scanned,) = (item for item in scan([chunk], shipped()) if isinstance(item, Scanned))
    assert scanned.newest == datetime(2022, 10, 5, 12, 0, 3, tzinfo=UTC)


def interleaved(rounds: Sequence[tuple[str, bytes]], start: int = 0) -> list[Chunk]:
    """Records of a partition: each line of another source, at ten positions each, the source in its labels."""
    return [
        Chunk(source, (start + n) * 10, line, 0, INGESTED, stream="t-0", end=(start + n + 1) * 10)
        for n, (source, line) in enumerate(rounds)
    ]


TRACES = [(source, line.encode() + b"\n") for line in (ERROR.replace("@@@", "000"), *LINES[2:5]) for source in ("t/a", "t/b")]


@pytest.mark.parametrize("held", [1, slices.MAX_WAITING_BYTES])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_sources_interleaved_in_one_stream_are_joined_each_for_itself(
    size: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "MAX_WAITING_BYTES", held)
    streams, said = Streams(shipped(), {}), list[Match | ActivitySpan]()
    for at in range(0, len(TRACES), size):
        items = list(scan(interleaved(TRACES[at : at + size], at), shipped()))
        said += [item for item in items if isinstance(item, Match | ActivitySpan)]
        for told in streams.join(edges(iter(items))):
            _hear(said, told)
    carriers = streams.carriers()
    for told in streams.close("t-0"):
        _hear(said, told)
    found = matches(said)
    assert {match.source_id for match in found} == {"t/a", "t/b"}
    assert all("Caused by: java.lang.IllegalStateException: no" in match.text for match in found)
    assert carriers == {"t/a": frozenset({"t-0"}), "t/b": frozenset({"t-0"})}


def test_sources_mixed_in_one_part_of_a_stream_are_one_slice_of_it() -> None:
    mixed = [Chunk(each, 0, b"x\ny\n", 0, INGESTED, stream="t-0", end=end) for each, end in (("t/a", 0), ("t/b", 40))]
    items = list(scan([*mixed, Chunk("t/a", 40, b"z\n", 0, INGESTED, stream="t-0", end=50)], shipped()))
    (edge,) = edges(iter(items))
    assert (edge.start, edge.end, {block.records[0].source_id for block in edge.tail.open}) == (0, 50, {"t/a", "t/b"})
    assert [item for item in items if isinstance(item, Scanned)] == [Scanned("t-0", 5, 10, events=3)]


def test_streams_of_a_slice_may_interleave_and_each_has_its_edges() -> None:
    first, second = interleaved(TRACES[:2])
    other = Chunk("u/a", 0, b"x\n", stream="u-0", end=10)
    found = edges(scan([first, other, second], shipped()))
    assert [(edge.parent_id, edge.start, edge.end) for edge in found] == [("t-0", 0, 20), ("u-0", 0, 10)]


def test_a_slice_without_any_line_keeps_a_stream_together() -> None:
    streams = Streams(shipped(), {})
    list(streams.join(edges(scan(interleaved(TRACES[:1]), shipped()))))
    empty = Chunk("t-0", 10, b"", stream="t-0", end=500)
    assert list(streams.join(edges(scan([empty], shipped())))) == []
    list(streams.join(edges(scan(interleaved(TRACES[2:3], 50), shipped()))))
    assert {"NotEnoughReplicasException" in match.text for match in matches(streams.close("t-0"))} == {True}


def test_an_open_end_is_matched_although_others_in_its_stream_go_on() -> None:
    streams = Streams(shipped(), {})
    list(streams.join(edges(scan(interleaved([TRACES[0], TRACES[2]]), shipped()))))
    found: list[Match | ActivitySpan | Retraction] = []
    for n in range(2, 5):
        busy = ("t/b", ERROR.replace("@@@", f"{n:03}").encode() + b"\n")
        found += streams.tick()
        found += streams.join(edges(scan(interleaved([busy], n), shipped())))
    quiet = [match for match in matches(found) if match.source_id == "t/a" and not match.rule_id.startswith("component:")]
    assert len({match.event_id for match in quiet}) == 1


def test_what_was_said_of_an_open_end_is_said_again_as_it_grows() -> None:
    """It is never denied in between: whoever was told would be told that it is not so."""
    header, reason, frame = (line.replace("@@@", "001").encode() + b"\n" for line in (LINES[0], LINES[2], LINES[3]))
    streams = Streams(shipped(), {})
    list(streams.join(edges(scan([Chunk("x.log", 0, header + reason, 1, INGESTED)], shipped()))))
    early = list(streams.settle("x.log"))
    grown = [Chunk("x.log", len(header + reason), frame, 3, INGESTED)]
    back, *again = (told for told in streams.join(edges(scan(grown, shipped()))) if not isinstance(told, ActivitySpan))
    assert isinstance(back, Retraction)
    assert matches(back.matches) == matches(early) != []
    assert [(match.rule_id, match.event_id) for match in again] == [(match.rule_id, match.event_id) for match in back.matches]
    assert all("ReplicaManager.append" in match.text for match in again)
    assert matches(streams.close("x.log")) == []


def test_sources_read_out_of_streams_are_caught_up_when_all_of_these_are() -> None:
    carriers = {"t/a": frozenset({"t-0"}), "t/b": frozenset({"t-0", "t-1"})}
    behind = [Progress("t-0", 5, 5, True), Progress("t-1", 3, 9, False)]
    assert carried_progress(behind, carriers) == [Progress("t/a", 5, 5, True), Progress("t/b", 8, 14, False)]
    assert carried_progress([Progress("u-0", 1, 1, True)], carriers) == []


def edges(items: Iterator[Match | ActivitySpan | SliceFragments | Scanned]) -> list[SliceFragments]:
    return [item for item in items if isinstance(item, SliceFragments)]


def test_the_state_of_a_stream_of_an_earlier_checkpoint_is_read() -> None:
    earlier = '{"end": 9, "open": {"open": []}, "said": {"a.log": {"records": 2, "matches": []}}}'
    assert loads(earlier, StreamState).matched == {"a.log": EarlyMatches(2)}
