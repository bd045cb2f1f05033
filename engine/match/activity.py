"""Who was heard from when: each source's event times coalesced into spans without a pause of SEEN_GAP_S."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from engine.model.matches import SEEN_GAP_S, ActivitySpan
from engine.model.records import REPEATED, AnyEvent, Labels, parent_id

_GAP = timedelta(seconds=SEEN_GAP_S)


class ActivityTracker:
    """The open span of each source. A span leaves when its source pauses, jumps back, or everything is closed.

    Args:
        stream: what all is read out of. Positions of sources that are not named after it, and so may be read out of others
            too, tell no order; without it all do.
    """

    __slots__ = ("_open", "_stream")

    def __init__(self, stream: str = "") -> None:
        self._stream = stream
        self._open: dict[str, tuple[datetime, datetime, Labels, int]] = {}

    def event(self, event: AnyEvent) -> Sequence[ActivitySpan]:
        """Take one event; return the span that it ends, if it does. Events without a stamp say nothing."""
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
        return (self._seen(source_id, first, last, labels, place),)

    def joined(self, span: ActivitySpan) -> None:
        """Take a span that joins on to what was heard of its source last; without that it says nothing."""
        open_ = self._open.get(span.source_id)
        if open_ is not None:
            first, last, labels, place = open_
            self._open[span.source_id] = (min(first, span.first), max(last, span.last), labels, place)

    def close(self) -> Iterator[ActivitySpan]:
        """Yield every open span and forget it."""
        for source_id, span in self._open.items():
            yield self._seen(source_id, *span)
        self._open = {}

    def _seen(self, source_id: str, first: datetime, last: datetime, labels: Labels, place: int) -> ActivitySpan:
        in_order = self._stream in ("", parent_id(source_id))
        return ActivitySpan(source_id, first, last, labels, place if in_order else None)
