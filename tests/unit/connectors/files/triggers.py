"""Reading a FilesSource trigger by trigger, as Spark does: offsets and slices survive as JSON only."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.files import FilesSource
from engine.errors import DataLoss
from engine.model.records import Progress
from engine.ports import Chunk, Offset

LONG_S = 120.0  # longer than anything that the source waits for


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@dataclass
class Clocks:
    """A monotonic clock and one on the wall that stand still until they are moved."""

    monotonic_s: float = 1000.0
    wall_s: float = field(default_factory=time.time)

    def pass_by(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds


@dataclass
class Reader:
    """One query over the files of `settings`. `crash` forgets everything but the offsets."""

    settings: Mapping[str, Any]
    clocks: Clocks = field(default_factory=Clocks)
    losses: list[DataLoss] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.crash()
        self.offset: Offset = through_json(self.source.initial())

    def crash(self) -> None:
        clocks = self.clocks
        self.source = FilesSource(**self.settings, clock=lambda: clocks.monotonic_s, wall=lambda: clocks.wall_s)

    def planned(self, max_lines: int | None = None) -> Offset:
        end: Offset = through_json(self.source.latest(self.offset, max_lines))
        return end

    def batch(self, end: Offset) -> list[Chunk]:
        """Return the chunks of the batch from where the query stands to `end`, and go there."""
        slices = through_json(self.source.partitions(self.offset, end))
        chunks = [chunk for slice_ in slices for chunk in self.read(slice_)]
        self.offset = end
        return chunks

    def trigger(self, max_lines: int | None = None) -> list[Chunk]:
        return self.batch(self.planned(max_lines))

    def read(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        try:
            yield from self.source.chunks(slice_)
        except* DataLoss as group:
            self.losses += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]

    def text(self, max_lines: int | None = None) -> str:
        return text_of(self.trigger(max_lines))

    def progress(self) -> Progress:
        (one,) = self.source.progress(self.offset)
        return one


def reader(folder: Path, pattern: str = "*.log*", clocks: Clocks | None = None, **settings: Any) -> Reader:
    return Reader({"paths": [str(folder / pattern)], **settings}, clocks or Clocks())


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.data.decode() for chunk in chunks)


def append(path: Path, text: str) -> None:
    with path.open("a") as stream:
        stream.write(text)
