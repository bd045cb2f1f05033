"""Bound a batch in bytes as well as in lines: sources plan by lines, so the size of lines is that of the last batches.

The driver writes the sizes into a file among those that it has for its workers; the planner, which is on the same machine,
reads it. What a batch reads is decided by its offsets alone, so a lost file changes only how much the next batch reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from engine.codec import dumps, loads
from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.slices import Scanned

FILE = "pace.json"
LEAST_LINES = 1000  # of a batch: however long its lines are, it goes on
MOST_STREAMS = 1000  # whose sizes are remembered: those that were read last


class LinePace(Struct, frozen=True):
    """The mean size of the lines of each stream, in bytes, by the name of the stream."""

    line_bytes: Mapping[str, float] = field(default_factory=dict)


def updated_pace(before: LinePace, amounts: Iterable[Scanned]) -> LinePace:
    """Return the pace after a batch that read `amounts`: half of it is that of the batch. Pure."""
    sizes = dict(before.line_bytes)
    lines: dict[str, int] = {}
    bytes_: dict[str, int] = {}
    for amount in amounts:
        lines[amount.source_id] = lines.get(amount.source_id, 0) + amount.lines
        bytes_[amount.source_id] = bytes_.get(amount.source_id, 0) + amount.bytes
    for stream, count in lines.items():
        if count:
            size = bytes_[stream] / count
            sizes[stream] = round((sizes.pop(stream, size) + size) / 2, 1)
    return LinePace(dict(list(sizes.items())[-MOST_STREAMS:]))


def line_bound(pace: LinePace, streams: Iterable[str], max_lines: int | None, max_bytes: int | None) -> int | None:
    """Return the most lines that a source with these streams may give to the next batch; None for no bound. Pure."""
    sizes = [pace.line_bytes[stream] for stream in streams if stream in pace.line_bytes]
    if max_bytes is None or not sizes or not any(sizes):
        return max_lines
    by_bytes = max(LEAST_LINES, int(max_bytes * len(sizes) / sum(sizes)))
    return by_bytes if max_lines is None else min(max_lines, by_bytes)


def write_pace(pace: LinePace, folder: Path) -> None:
    """Write `pace` into `folder`. A failure is ignored."""
    with suppress(OSError):
        LocalCheckpoint(folder).write(FILE, dumps(pace))


class PaceFile:
    """The pace of a run, in the driver. It is written where the planner reads it, if it `is_used`."""

    def __init__(self, is_used: bool) -> None:
        self._is_used, self._pace = is_used, LinePace()

    def take(self, items: Iterable[object]) -> None:
        """Take the items of a batch."""
        before, self._pace = self._pace, updated_pace(self._pace, (item for item in items if isinstance(item, Scanned)))
        if self._is_used and self._pace != before:
            from pyspark import SparkFiles  # noqa: PLC0415  (only with Spark)

            write_pace(self._pace, Path(SparkFiles.getRootDirectory()))


def read_pace(folder: Path) -> LinePace:
    """Return the pace in `folder`; an empty one when there is none."""
    with suppress(OSError, msgspec.MsgspecError):
        return loads((folder / FILE).read_text(encoding="utf-8"), LinePace)
    return LinePace()
