"""Logs behind wrappers and JSON logs are skimmed too, and nothing that would have been said is left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cli.triage import triage
from engine.columns import bounded as columns
from engine.columns import reading
from engine.model.records import Progress, Record
from engine.parse import unwrap_line
from engine.ports import Chunk
from engine.skim import alike, documents, skimmer
from engine.skim.skimmer import Skimmer
from tests.unit.columns.test_bounded import STAMPS, log, naive, rules, told
from tests.unit.skim.test_skim import HEADS, compiled, said, stamp, stream
from tests.wrapping import CHAINS, mingled, wrapped

pytestmark = pytest.mark.slow

INGESTED = datetime(2022, 10, 6, tzinfo=UTC)
SHARES = st.sampled_from([0.0, 0.03, 0.3])
PAUSES = st.sampled_from([0, 10, 59, 200])
chains = st.lists(st.sampled_from(CHAINS), min_size=1, max_size=3)
places = st.lists(st.floats(0, 1), max_size=4)


@pytest.fixture(autouse=True)
def small_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is skimmed, however little it is; what came twice is known."""
    monkeypatch.setattr(columns, "COLUMNS_FROM_BYTES", 0)
    monkeypatch.setattr(reading, "ENOUGH", 2)
    monkeypatch.setattr(skimmer, "ENOUGH_LINES", 2)
    monkeypatch.setattr(alike, "LEARNT_AFTER", 2)
    monkeypatch.setattr(documents, "LEARNT_AFTER", 2)


def cut(data: bytes, where: Sequence[float], zone: str = "") -> list[Chunk]:
    """The same lines in chunks, cut at the line ends behind these parts of the whole."""
    ends = sorted({data.find(b"\n", int(part * (len(data) - 1))) + 1 for part in where} | {0, len(data)})
    labels = {"timezone": zone} if zone else {}
    return [
        Chunk("a.log", start, data[start:end], data[:start].count(b"\n") + 1, INGESTED, labels) for start, end in pairwise(ends)
    ]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32),
    chains,
    st.sampled_from(STAMPS),
    PAUSES,
    SHARES,
    SHARES,
    st.sampled_from(["", "Asia/Seoul", "Europe/Berlin"]),
    places,
)
def test_any_wrapped_log_shows_the_same_when_it_is_skimmed(
    seed: int, behind: list[tuple[str, ...]], layout: str, pause: int, odd: float, torn: float, zone: str, where: list[float]
) -> None:
    random = Random(seed)
    histories = [wrapped(log(random, layout, pause, odd), chain, random, torn) for chain in behind]
    data = "\n".join(islice(mingled(histories, random), 120)).encode()
    items = [*cut(data, where, zone), Progress("a.log", len(data), len(data), caught_up=True)]
    assert told(triage(items, rules(), [])) == naive(items)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), chains, st.integers(1, 6), PAUSES, SHARES, SHARES)
def test_any_wrapped_stream_says_the_same_when_it_is_skimmed(
    seed: int, behind: list[tuple[str, ...]], pieces: int, pause: int, odd: float, torn: float
) -> None:
    random = Random(seed)
    histories = [wrapped(stream(random, pause, odd), chain, random, torn) for chain in behind]
    data = "\n".join(islice(mingled(histories, random), 100)).encode() + b"\n"
    assert said(data, skimmed=True, pieces=pieces) == said(data, skimmed=False)


def test_a_line_of_a_container_may_stand_in_what_names_none() -> None:
    random, quiet = Random(1), [HEADS[2].format(stamp(at / 10)) for at in range(40)]
    late = "worker-1  | [2022-10-05 17:05:04,001] INFO of another hour"
    histories = [wrapped(iter(quiet), ("compose",), random), wrapped(iter([*quiet[:10], late, *quiet[10:]]), ("cri",), random)]
    data = "\n".join(mingled(histories, random)).encode() + b"\n"
    assert said(data, skimmed=True) == said(data, skimmed=False)


@pytest.mark.parametrize("container", ["compose", "kubectl"])
def test_a_storm_of_a_container_is_cut_as_it_is_read(container: str) -> None:
    storm = [text.format(stamp(at / 10)) for at in range(60) for text in (HEADS[2], HEADS[5])]
    data = "\n".join(wrapped(iter(storm), (container,), Random(1))).encode() + b"\n"
    for pieces in (1, 4):
        assert said(data, skimmed=True, pieces=pieces) == said(data, skimmed=False)


@pytest.mark.parametrize("chain", CHAINS, ids=" in ".join)
def test_a_quiet_log_behind_any_wrapper_is_left_out(chain: tuple[str, ...]) -> None:
    random = Random(1)
    data = "\n".join(islice(wrapped(log(random, STAMPS[0], 10, 0.0), chain, random), 500)).encode()
    skimming = Skimmer(compiled().sight)
    (chunk,) = cut(data, [])
    read = [each for each in skimming.read([chunk]) if isinstance(each, Record)]
    assert skimming.left_out > 100
    assert len(read) < 250
    everything = {raw.offset: unwrap_line(raw, compiled().formats) for raw in chunk.lines()}
    assert all(everything[record.offset] == record for record in read)
