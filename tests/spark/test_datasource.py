"""The adapter of sources, asked as Spark asks it: what is decided of sources that cannot be read is in its offset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from engine import __version__
from engine.clock import SteadyClock
from engine.dsl import builtin_rules, load_cached
from engine.errors import LateInput, SourceAway, SourceDenied, SourceError, TocsinError
from engine.model.records import Progress, Tick
from engine.ports import Chunk, Offset
from engine.spark import datasource
from engine.spark.checkpoints import SharedMark
from engine.spark.datasource import ReadSettings, SourceReader, source_options
from engine.spark.job import plan_file
from engine.spark.rows import BatchCounts, InputNotice, item
from engine.spark.sources import SourceSpec


@dataclass
class Counter:
    """A source of numbers that is away as long as `away` says why."""

    end: int = 0
    away: str = ""
    refused: dict[str, SourceError] = field(default_factory=dict)

    def initial(self) -> Offset:
        self.latest({})
        return {"at": 0}

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        if self.away:
            raise SourceAway("the counter", self.away)
        return {"at": self.end}

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        return []

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        yield from ()

    def unreadable(self) -> Mapping[str, SourceError]:
        return self.refused

    def progress(self, end: Offset) -> Sequence[Progress]:
        return [Progress("counter", end["at"], end["at"], caught_up=True)]


SOURCES: dict[str, Counter] = {}


def open_counter(settings: Mapping[str, Any]) -> Counter:
    return SOURCES.setdefault(settings["name"], Counter())


def reader(**how: Any) -> SourceReader:
    specs = [SourceSpec(name, f"{__name__}:open_counter", {"name": name}, "prod") for name in ("one", "two")]
    return SourceReader(source_options(specs, ReadSettings("no plan", **how)))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seconds since 1970, and how many of them the wall clock is ahead."""
    now = [1000, 0]
    wall = lambda: datetime.fromtimestamp(now[0] + now[1], UTC)  # noqa: E731
    monkeypatch.setattr(datasource, "SteadyClock", lambda: SteadyClock(wall, lambda: float(now[0])))
    SOURCES.clear()
    SOURCES.update(one=Counter(), two=Counter())
    return now


def latest(asked: SourceReader, start: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(json.dumps(asked.latestOffset(json.loads(json.dumps(start)), ReadAllAvailable())))
    return found


def rows(asked: SourceReader, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Any]:
    return [item(kind, body) for part in asked.partitions(start, end) for _, kind, body in asked.read(part)]


def test_a_source_that_is_away_stays_where_it_was_and_the_others_go_on(clock: list[int]) -> None:
    asked = reader(stalled_after_s=60)
    start = asked.initialOffset()
    SOURCES["one"].away, SOURCES["two"].end = "gone", 5
    end = latest(asked, start)
    assert end["sources"] == {"one": {"at": 0}, "two": {"at": 5}}
    found = rows(asked, start, end)
    assert [each.text for each in found if isinstance(each, InputNotice)] == [
        "cannot read 'the counter': gone; looking again until it can be read"
    ]
    assert [each.caught_up for each in found if isinstance(each, Progress)] == [False, True]


def test_what_a_source_cannot_read_while_it_goes_on_is_said_and_what_is_denied_is_waited_for(clock: list[int]) -> None:
    asked = reader(stalled_after_s=60)
    start = asked.initialOffset()
    SOURCES["one"].end = SOURCES["two"].end = 5
    SOURCES["one"].refused = {"/a.log": SourceDenied("/a.log: no permission to read it")}
    SOURCES["two"].refused = {"/b.hprof": SourceError("/b.hprof: is not text")}
    end = latest(asked, start)
    assert end["sources"] == {"one": {"at": 5}, "two": {"at": 5}}
    found = rows(asked, start, end)
    assert [each.text for each in found if isinstance(each, InputNotice)] == [
        "cannot read '/a.log': no permission to read it; looking again until it can be read",
        "cannot read '/b.hprof': is not text; passed over until it can be",
    ]
    assert [each.caught_up for each in found if isinstance(each, Progress)] == [False, True]
    clock[0] += 60
    said = [each.text for each in rows(asked, end, latest(asked, end)) if isinstance(each, InputNotice)]
    assert said == ["'/a.log' has not been readable for 60 s: no permission to read it"]


def test_what_is_said_of_a_batch_is_the_same_whenever_it_is_repeated(clock: list[int]) -> None:
    asked = reader(stalled_after_s=60)
    start = asked.initialOffset()
    SOURCES["one"].away = "gone"
    begun = latest(asked, start)
    clock[0] += 60
    long = latest(asked, begun)
    said = rows(asked, begun, long)
    SOURCES["one"].away = ""
    clock[0] += 1000
    assert rows(reader(stalled_after_s=60), begun, long) == said
    assert "has not been readable for 60 s" in next(each.text for each in said if isinstance(each, InputNotice))
    over = latest(asked, long)
    assert not over["stalls"]
    assert "readable again after 1060 s" in next(each.text for each in rows(asked, long, over) if isinstance(each, InputNotice))


def test_a_source_that_is_away_at_the_start_begins_when_it_is_there(clock: list[int]) -> None:
    SOURCES["one"].away = "not there"
    asked = reader(stalled_after_s=60)
    start = asked.initialOffset()
    assert start["sources"] == {"two": {"at": 0}}
    waiting = latest(asked, start)
    SOURCES["one"].away, SOURCES["one"].end = "", 3
    there = latest(asked, waiting)
    assert there["sources"]["one"] == {"at": 0}
    assert latest(asked, there)["sources"]["one"] == {"at": 3}


def test_an_input_with_an_end_waits_for_nobody(clock: list[int]) -> None:
    asked = reader()
    start = asked.initialOffset()
    SOURCES["one"].away = "gone"
    with pytest.raises(SourceAway, match="gone"):
        latest(asked, start)


def test_time_is_data_where_input_has_no_end_and_stands_still_where_it_has(clock: list[int]) -> None:
    live, bounded = reader(stalled_after_s=60), reader()
    start = latest(live, live.initialOffset())
    assert latest(live, start) == start, "no second has passed"
    clock[0] += 5
    end = latest(live, start)
    assert [each.at.timestamp() for each in rows(live, start, end) if isinstance(each, Tick)] == [1005]
    assert latest(bounded, end) == end
    assert not any(isinstance(each, Tick) for each in rows(bounded, start, end))


def test_time_passes_by_the_second_after_lines_came_and_by_five_when_all_is_quiet(clock: list[int]) -> None:
    asked = reader(stalled_after_s=60)
    place, batches = latest(asked, asked.initialOffset()), list[int]()
    for now in range(1001, 1025):
        clock[0], SOURCES["one"].end = now, int(now >= 1008)
        if (there := latest(asked, place)) != place:
            batches.append(now)
        place = there
    assert batches == [1005, 1008, 1009, 1010, 1011, 1016, 1021]


def ticks(asked: SourceReader, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Tick]:
    return [each for each in rows(asked, start, end) if isinstance(each, Tick)]


def notices(asked: SourceReader, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[str]:
    return [each.text for each in rows(asked, start, end) if isinstance(each, InputNotice)]


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_ticks_go_on_at_their_pace_while_the_wall_clock_is_off_for_seconds_and_it_is_said_once(
    clock: list[int], jump_s: int
) -> None:
    asked = reader(stalled_after_s=60)
    place, seen, said = latest(asked, asked.initialOffset()), list[float](), list[str]()
    for now in range(1001, 1041):
        clock[0], clock[1] = now, jump_s if 1010 <= now < 1020 else 0
        if (there := latest(asked, place)) == place:
            continue
        seen += [tick.at.timestamp() for tick in ticks(asked, place, there)]
        said += notices(asked, place, there)
        place = there
    assert seen == sorted(seen)
    assert max(later - earlier for earlier, later in pairwise(seen)) <= 5
    assert seen[-1] >= 1035
    assert [("by 1 h" in sentence, "forward" in sentence) for sentence in said] == [(True, jump_s > 0)]


def test_a_tick_that_a_restart_finds_far_ahead_of_the_clock_is_set_back_at_once(clock: list[int]) -> None:
    before = reader(stalled_after_s=60)
    clock[1] = 86400
    SOURCES["one"].away = "gone"
    ahead = latest(reader(stalled_after_s=60), before.initialOffset())
    clock[:] = [1010, 0]
    asked = reader(stalled_after_s=60)
    there = latest(asked, ahead)
    (tick,) = ticks(asked, ahead, there)
    assert (tick.at.timestamp(), tick.set_back) == (1010, True)
    assert "was 23 h 59 min ahead of the clock, and is set back" in notices(asked, ahead, there)[-1]
    assert [stall["since_s"] for stall in there["stalls"]] == [1010]
    clock[0] += 5
    assert [each.set_back for each in ticks(asked, there, latest(asked, there))] == [False]


def test_a_tick_that_is_a_little_ahead_stands_still_until_the_clock_is_there(clock: list[int]) -> None:
    start = latest(reader(stalled_after_s=60), reader(stalled_after_s=60).initialOffset())
    clock[0] = 970
    asked = reader(stalled_after_s=60)
    assert latest(asked, start) == start
    clock[0] = 1005
    assert [each.at.timestamp() for each in ticks(asked, start, latest(asked, start))] == [1005]


def test_matches_that_hyperscan_loses_are_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("engine.match.prefilter.AUDIT_EVERY", 1)
    monkeypatch.setattr("engine.match.prefilter._Database.search", lambda *_: ())
    line = b"[2022-10-05 17:05:%02d,%03d] ERROR Shutdown broker because all log dirs in /kafka have failed (k.l.LogManager)\n"
    lines = b"".join(line % (number // 100, number % 1000) for number in range(2000))
    monkeypatch.setattr(Counter, "partitions", lambda *_: [{}])
    monkeypatch.setattr(Counter, "chunks", lambda *_: iter([Chunk("log", 0, lines)]))
    specs = [SourceSpec("one", f"{__name__}:open_counter", {"name": "one"}, "prod")]
    asked = SourceReader(source_options(specs, ReadSettings(str(plan_file(load_cached([builtin_rules()]), tmp_path)))))
    start = asked.initialOffset()
    counts = []
    for end in (1, 2):
        SOURCES["one"].end = end
        there = latest(asked, start)
        counts.append(sum(isinstance(each, InputNotice) and "Hyperscan" in each.text for each in rows(asked, start, there)))
        start = there
    assert counts == [1, 0]


def test_sources_with_one_slice_are_spread_over_the_tasks_and_stay_with_theirs(
    clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "partitions", lambda self, start, end, parallelism=1: [end] if start != end else [])
    asked = reader(parallelism=2)
    start = asked.initialOffset()
    for ends, tasks in (((1, 1), [["one"], ["two"]]), ((1, 2), [[], ["two"]]), ((2, 2), [["one"], []])):
        SOURCES["one"].end, SOURCES["two"].end = ends
        end = latest(asked, start)
        assert [[name for name, _ in part.value[1]] for part in asked.partitions(start, end)] == tasks
        start = end


def test_on_a_cluster_what_only_this_machine_can_read_is_read_while_a_batch_is_planned(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("[2026-11-27 01:00:00,000] INFO one (a.B)\n", encoding="utf-8")
    settings = {"paths": [str(log)], "final": True}
    spec = SourceSpec("files", "connectors.files:open_source", settings, "prod", is_local=True)
    plan = str(plan_file(load_cached([builtin_rules()]), tmp_path))
    here, there = (
        SourceReader(source_options([spec], ReadSettings(plan, 2, on_cluster=on_cluster, version=__version__)))
        for on_cluster in (False, True)
    )
    start = here.initialOffset()
    end = latest(here, start)
    assert [bool(part.value[1]) for part in here.partitions(start, end)] == [True, False]
    planned = there.partitions(start, end)
    assert [part.value[1] for part in planned] == [[], []]
    log.unlink()  # as it is on an executor
    (amount,) = [item(kind, body) for part in planned for _, kind, body in there.read(part) if kind == "Scanned"]
    assert amount.lines == 1


@dataclass
class Belated(Counter):
    """A source whose lines came almost too late."""

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        return [{}]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        yield Chunk("logs-*", 0, b"[2026-11-27 01:00:00,000] INFO one (a.B)\n")
        raise LateInput("logs-*", 1, 812, 900)


def test_lines_that_came_late_are_told_and_counted(clock: list[int], tmp_path: Path) -> None:
    SOURCES["one"] = Belated(1)
    spec = SourceSpec("one", f"{__name__}:open_counter", {"name": "one"}, "prod")
    plan = str(plan_file(load_cached([builtin_rules()]), tmp_path))
    asked = SourceReader(source_options([spec], ReadSettings(plan)))
    found = rows(asked, asked.initialOffset(), latest(asked, asked.initialOffset()))
    assert [each for each in found if isinstance(each, BatchCounts)] == [BatchCounts(late={"logs-*": 1})]
    (notice,) = (each for each in found if isinstance(each, InputNotice))
    assert notice.text.startswith("1 lines of 'logs-*' came up to 812 s late")


def test_an_executor_with_another_version_is_refused_with_both(clock: list[int]) -> None:
    asked = reader(on_cluster=True, version="0.0.1")
    (part,) = asked.partitions(asked.initialOffset(), asked.initialOffset())
    with pytest.raises(
        TocsinError, match=f"has tocsin {re.escape(__version__)}, and the driver 0.0.1: install the same version"
    ):
        list(asked.read(part))


def test_an_executor_that_does_not_share_the_checkpoint_is_refused(clock: list[int], tmp_path: Path) -> None:
    asked = reader(on_cluster=True, version=__version__, mark=SharedMark(str(tmp_path / "shared-1")))
    (part,) = asked.partitions(asked.initialOffset(), asked.initialOffset())
    with pytest.raises(TocsinError, match=f"^the checkpoint {tmp_path} is not shared: executor"):
        list(asked.read(part))
