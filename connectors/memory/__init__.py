"""A source and a receiver in memory, for tests and as minimal examples of the ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from engine.errors import SourceError
from engine.model.notifications import DeliveryState, Notification, Receipt
from engine.model.records import NO_LABELS, Labels, Progress
from engine.ports import Chunk, Offset

__all__ = ["MemoryReceiver", "MemorySource", "open_source"]


class MemorySource(Struct, frozen=True):
    """Named streams of lines in memory. An offset is the number of lines read by stream.

    Offsets of chunks count bytes, as in a file with the same lines, each ended by a newline.
    """

    streams: Mapping[str, Sequence[str]]
    labels: Labels = field(default_factory=dict)

    def initial(self) -> Offset:
        """Return the beginning of every stream."""
        return dict.fromkeys(sorted(self.streams), 0)

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the end of every stream, or each stream's share of `max_lines` past `start`."""
        share = None if max_lines is None else max(1, max_lines // max(1, len(self.streams)))
        ends = {name: len(lines) for name, lines in sorted(self.streams.items())}
        return ends if share is None else {name: min(end, start.get(name, 0) + share) for name, end in ends.items()}

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return up to `parallelism` slices; no stream is divided."""
        ranges = [[name, start.get(name, 0), to] for name, to in end.items() if to > start.get(name, 0)]
        slices = [ranges[at::parallelism] for at in range(parallelism)]
        return [{"ranges": ranges} for ranges in slices if ranges]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield one chunk for each stream of the slice, in its order."""
        for name, start, end in slice_["ranges"]:
            lines = [line.encode() + b"\n" for line in self.streams[name]]
            before = sum(len(line) for line in lines[:start])
            yield Chunk(name, before, b"".join(lines[start:end]), start + 1, None, self.labels or NO_LABELS)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress of each stream at `end`."""
        return [self._progress(name, to) for name, to in end.items()]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return an empty map: memory is always readable."""
        return {}

    def labels_of(self, source_id: str) -> Labels:
        """Return the labels, which are the same for every stream."""
        return self.labels

    def _progress(self, name: str, to: int) -> Progress:
        sizes = [len(line.encode()) + 1 for line in self.streams[name]]
        return Progress(name, sum(sizes[:to]), sum(sizes), caught_up=to >= len(sizes))


@dataclass
class MemoryReceiver:
    """Records delivered notifications in order. `answers` are its next receipts; when they run out, everything is delivered."""

    edits: bool = False
    records: bool = False
    gathers: bool = False
    rate_limit_key: str = ""
    notifications: list[Notification] = field(default_factory=list)
    answers: list[Receipt] = field(default_factory=list)

    def deliver(self, notification: Notification) -> Receipt:
        """Return the next receipt, and record `notification` if that says delivered."""
        receipt = self.answers.pop(0) if self.answers else Receipt(DeliveryState.DELIVERED)
        if receipt.state is DeliveryState.DELIVERED:
            self.notifications.append(notification)
        return receipt


def open_source(settings: Mapping[str, Any]) -> MemorySource:
    """Return the source of `settings`, a JSON value with `streams` and optional `labels`."""
    return MemorySource(**settings)
