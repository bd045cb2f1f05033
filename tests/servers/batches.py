"""Reading a source batch by batch as the job does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from engine.errors import DataLoss, SourceAway
from engine.model.records import RawLine
from engine.ports import Chunk, Offset, Source


class Reader:
    """Reads a source batch by batch as the job does; offsets and slices survive as JSON only."""

    def __init__(self, source: Source, max_lines: int | None = None) -> None:
        self.source, self.max_lines = source, max_lines
        self.at: Offset = source.initial()
        self.batches: list[list[Chunk]] = []
        self.lost: list[DataLoss] = []

    def batch(self) -> bool:
        """Read one batch; False when there was nothing."""
        try:
            end = json.loads(json.dumps(self.source.latest(self.at, self.max_lines)))
        except SourceAway:
            return False
        if end == self.at:
            return False
        self.batches.append([])
        for slice_ in json.loads(json.dumps(self.source.partitions(self.at, end))):
            self.batches[-1] += self._chunks(slice_)
        self.at = end
        return True

    def drain(self) -> Reader:
        while self.batch():
            pass
        return self

    def lines(self) -> list[tuple[str, str]]:
        """What was read: source and text of each line, in the order it came."""
        return [(line.source_id, line.value.decode()) for line in self.raw()]

    def raw(self) -> list[RawLine]:
        return [line for batch in self.batches for chunk in batch for line in chunk.lines()]

    def contiguous(self) -> bool:
        ends: dict[str, int] = {}
        for chunk in (chunk for batch in self.batches for chunk in batch):
            if ends.setdefault(chunk.parent_id, chunk.offset) != chunk.offset:
                return False
            ends[chunk.parent_id] = chunk.next_offset
        return True

    def _chunks(self, slice_: Any) -> Iterator[Chunk]:
        try:
            yield from self.source.chunks(slice_)
        except* DataLoss as group:
            self.lost += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]
