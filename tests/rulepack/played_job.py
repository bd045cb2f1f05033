"""A job without Java: the planner, the workers' reading, the keyed state and the store are those of `tocsin run`, called one
after the other as Spark does, and each can be the last that is done before a kill.

What outlives a kill is what outlives it under Spark: the plans and commits of batches in the checkpoint, the state as text
after each batch, and the store.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from connectors.files import FilesSource
from engine.clock import SteadyClock
from engine.model.rules import Plan
from engine.spark.datasource import ReadSettings, SourceReader, source_options
from engine.spark.fence import QUERY
from engine.spark.job import Job, _BatchWriter, fence_of, plan_file
from engine.spark.rows import RowTuple, received, sent
from engine.spark.scope import ScopeState
from engine.spark.slices import stages_of
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.unit.connectors.files.triggers import Clocks

SCOPE, SOURCE = "history", "logs"
MOMENTS = ("a slice read", "all read", "the state written", "in the transaction", "in the store")

Place = Mapping[str, Any]


class Killed(Exception):
    """Nothing more is done by this process."""


@dataclass
class PlayedJob:
    """The job of `plan` over the files at `paths`. `start` begins a process of it; `kill` ends one.

    `ticking` is what its ticks are made of: the wall clock, and a clock that is never set; `clocks` are those of its files.
    """

    folder: Path
    paths: tuple[str, ...]
    plan: Plan
    clocks: Clocks
    ticking: Callable[[], SteadyClock]
    chance: Random = field(default_factory=Random)
    place: Place | None = None
    planned: Place | None = None
    batch: int = 0
    bounded: bool = False

    def __post_init__(self) -> None:
        self._states: dict[int, dict[str, str]] = {0: {}}  # by the number of the batch that goes on from it
        (self.checkpoint / QUERY / "offsets").mkdir(parents=True)
        (self.checkpoint / QUERY / "commits").mkdir()
        self.start()

    @property
    def checkpoint(self) -> Path:
        return self.folder / "tocsin.checkpoint"

    def start(self, bounded: bool = False) -> None:
        """Begin a process, as `tocsin run` does, or `tocsin run --once` when it is `bounded`."""
        self.bounded, self._held = bounded, ExitStack()
        self.store = self._held.enter_context(closing(Store.open(f"sqlite:///{self.folder}/tocsin.db")))
        fence = self._held.enter_context(fence_of(self.store, self.checkpoint, lambda sentence: None))
        self._plan_file = str(plan_file(self.plan, self.checkpoint))
        self.reader = self._opened()
        (self.checkpoint / QUERY / "metadata").write_text('{"id":"0"}')
        self._batches = _BatchWriter(Job((), self.plan, self.store, self.checkpoint, bounded), fence)
        self._batches.regroup()
        if self.batch == 0 or self.place is None:  # Spark asks again until a first batch is done
            self.place = _through_json(self.reader.initialOffset())

    def kill(self) -> None:
        """End the process; the kernel lets go of what it held."""
        self._held.close()

    def restart(self, bounded: bool = False) -> None:
        self.kill()
        self.start(bounded)

    def ends_at(self, max_lines: int | None = None) -> Place:
        """Return how far a batch would reach."""
        limit = ReadMaxRows(max_lines) if max_lines else ReadAllAvailable()
        return _through_json(self.reader.latestOffset(self.place, limit))

    def write_plan(self, end: Place) -> None:
        (self.checkpoint / QUERY / "offsets" / str(self.batch)).write_text("v1")
        self.planned = end

    def do(self, killed_at: str = "") -> None:
        """Do the batch that is planned; raise Killed once it has come to the moment `killed_at`."""
        state = dict(self._states[self.batch])
        rows = self._judged(self._read(killed_at), state)
        self._states[self.batch + 1] = state
        _reach("the state written", killed_at)
        before = self.store.batches()
        self._put(rows, killed_at)
        _reach("in the store", killed_at)
        assert self.store.batches() - before in (0, 1)
        (self.checkpoint / QUERY / "commits" / str(self.batch)).write_text("v1")
        self._states.pop(self.batch)
        self.place, self.planned, self.batch = self.planned, None, self.batch + 1

    def _put(self, rows: list[RowTuple], killed_at: str) -> None:
        frame = SimpleNamespace(collect=lambda: [SimpleNamespace(kind=kind, body=body) for _, kind, body in rows])
        if killed_at != "in the transaction":
            self._batches.take(frame, self.batch)
            return
        commit, self.store.batch = self.store.batch, _cut_off(self.store.batch)  # type: ignore[method-assign]
        try:
            self._batches.take(frame, self.batch)
        finally:
            self.store.batch = commit  # type: ignore[method-assign]

    def _read(self, killed_at: str) -> list[RowTuple]:
        """Return the rows of all slices, each read in a process of its own, in any order."""
        rows: list[RowTuple] = []
        for partition in self.reader.partitions(self.place, self.planned):
            rows += self._opened().read(pickle.loads(pickle.dumps(partition)))
            _reach("a slice read", killed_at)
        _reach("all read", killed_at)
        self.chance.shuffle(rows)
        return rows

    def _judged(self, rows: list[RowTuple], state: dict[str, str]) -> list[RowTuple]:
        if not rows:
            return []
        items = [received(kind, body) for _, kind, body in rows]
        return [sent(SCOPE, item) for item in ScopeState(stages_of(self._plan_file), SCOPE, state, self.bounded).take(items)]

    def _opened(self) -> SourceReader:
        settings = {"paths": list(self.paths), "labels": {"cluster": SCOPE}, "final": self.bounded}
        spec = SourceSpec(SOURCE, "connectors.files:open_source", settings, SCOPE)
        reader = SourceReader(source_options([spec], ReadSettings(self._plan_file, 2, None, None if self.bounded else 60.0)))
        clocks = self.clocks
        reader._sources = {SOURCE: FilesSource(**settings, clock=lambda: clocks.monotonic_s, wall=lambda: clocks.wall_s)}
        reader._clock = self.ticking()
        return reader

    def files(self, place: Place | None) -> Any:
        """Return the offset of the files in that of the job."""
        return (place or {}).get("sources", {}).get(SOURCE)


def _reach(moment: str, killed_at: str) -> None:
    if moment == killed_at:
        raise Killed(moment)


def _cut_off(batch: Callable[..., Any]) -> Callable[..., Any]:
    @contextmanager
    def cut(*args: Any) -> Any:
        with batch(*args) as ledger:
            yield ledger
            raise Killed("in the transaction")

    return cut


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))
