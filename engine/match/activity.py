"""Combines the event times of each source into activity spans: spans without a pause of SEEN_GAP_S or longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from engine.model.matches import SEEN_GAP_S, ActivitySpan
from engine.model.records import REPEATED, AnyEvent, Labels, parent_id

_GAP = timedelta(seconds=SEEN_GAP_S)


class ActivityTracker:
    """Keeps the open span of each source. A span ends when its source pauses or jumps back in time, and at `close`.

    Args:
        stream: the file or partition that all sources are read out of. A source that is not named after it may also be read out
            of others, so its offsets are in no order and its spans have no `place`. Empty: all offsets are in order.
    """

    __slots__ = ("_open", "_stream")

    def __init__(self, stream: str = "") -> None:
        self._stream = stream
        self._open: dict[str, tuple[datetime, datetime, Labels, int]] = {}

    def event(self, event: AnyEvent) -> Sequence[ActivitySpan]:
        """Add one event and return the span that it ends, or an empty sequence. An event without a timestamp is left out."""
        at, source_id = event.timestamp, event.source_id
        if at is None:
            return ()
        span = self._open.get(source_id)
        if span is None:
            self._open[source_id] = (at, at, event.labels, event.offset)
            return ()
        first, last, labels, place = span
        if REPEATED in event.labels:
            labels = {**labels, REPEATED: event.labels[REPEATED]}
            self._open[source_id] = (first, last, labels, place)
        if last <= at:
            if at - last < _GAP:
                self._open[source_id] = (first, at, labels, place)
                return ()
        elif first - at < _GAP:
            if at < first:
                self._open[source_id] = (at, last, labels, place)
            return ()
        self._open[source_id] = (at, at, event.labels, event.offset)
        return (self._span(source_id, first, last, labels, place),)

    def joined(self, span: ActivitySpan) -> None:
        """Extend the open span of a source by `span`, which follows it without a pause; do nothing when none is open."""
        open_ = self._open.get(span.source_id)
        if open_ is not None:
            first, last, labels, place = open_
            self._open[span.source_id] = (min(first, span.first), max(last, span.last), labels, place)

    def close(self) -> Iterator[ActivitySpan]:
        """Yield every open span and remove it."""
        for source_id, span in self._open.items():
            yield self._span(source_id, *span)
        self._open = {}

    def _span(self, source_id: str, first: datetime, last: datetime, labels: Labels, place: int) -> ActivitySpan:
        in_order = self._stream in ("", parent_id(source_id))
        return ActivitySpan(source_id, first, last, labels, place if in_order else None)
