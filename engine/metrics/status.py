"""The status of the parts of a run, as they store it for `tocsin doctor`. Counts; stores nothing itself."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from engine import __version__
from engine.model.statuses import JobStatus, NotifierStatus, StreamStatus

MOST_STREAMS = 200  # in a stored status: those that were read last
MOST_RULES = 20  # in a stored status: those that matched most
LAST_TRIGGERS = 100
STORE_EVERY_S = 10.0
NEW_STREAM = StreamStatus()
_DAWN = datetime(1970, 1, 1, tzinfo=UTC)


class StatusClock:
    """Says when the status of a part is to be stored again: at once, and then every STORE_EVERY_S. Used by one thread."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s, self._next_s = monotonic_s, float("-inf")

    def is_due(self) -> bool:
        """Return whether it is time; the next time is STORE_EVERY_S later."""
        if (now_s := self._monotonic_s()) < self._next_s:
            return False
        self._next_s = now_s + STORE_EVERY_S
        return True


class JobRecord:
    """What a job did since its start, for its status. Used by one thread, but for `triggered`.

    Args:
        holder: the process, for people.
        now: the clock of this machine.
    """

    def __init__(self, holder: str, now: Callable[[], datetime]) -> None:
        self._holder, self._now, self._started_at = holder, now, now()
        self._batches = 0
        self._triggers_s: deque[float] = deque(maxlen=LAST_TRIGGERS)
        self._streams: dict[str, StreamStatus] = {}
        self._matches = Counter[str]()

    def read(self, stream: str, lines: int, size: int, newest: datetime | None) -> None:
        """Take the lines and bytes that a batch read from a stream, and their newest event time."""
        status = self._streams.get(stream, NEW_STREAM)
        times = [at for at in (status.newest, newest) if at is not None]
        self._streams[stream] = replace(
            status,
            lines=status.lines + lines,
            bytes=status.bytes + size,
            read_at=self._now() if lines else status.read_at,
            newest=max(times, default=None),
        )

    def matched(self, matches: Mapping[str, int]) -> None:
        """Take the matches of a batch by rule."""
        self._matches.update(matches)

    def stored(self, unread: Mapping[str, int]) -> None:
        """Take a stored batch, and what it left unread of the streams that it did not read to their end."""
        self._batches += 1
        behind = [name for name, status in self._streams.items() if status.unread]
        for name in {*behind, *unread}:
            self._streams[name] = replace(self._streams.get(name, NEW_STREAM), unread=unread.get(name, 0))

    def triggered(self, seconds: float) -> None:
        """Take the duration of a trigger."""
        self._triggers_s.append(seconds)

    def status(self) -> JobStatus:
        """Return the status as of now."""
        triggers_s = list(self._triggers_s)
        return JobStatus(
            self._holder,
            __version__,
            self._started_at,
            self._now(),
            self._batches,
            triggers_s[-1] if triggers_s else None,
            max(triggers_s, default=None),
            _newest_streams(self._streams.items()),
            len(self._streams),
            dict(self._matches.most_common(MOST_RULES)),
        )


class NotifierRecord:
    """The process whose notifier sends, for its status; `now` is the clock of this machine."""

    def __init__(self, holder: str, now: Callable[[], datetime]) -> None:
        self._holder, self._now, self._started_at = holder, now, now()

    def status(self) -> NotifierStatus:
        """Return the status after a step of the notifier now."""
        return NotifierStatus(self._holder, __version__, self._started_at, self._now())


def _newest_streams(streams: Iterable[tuple[str, StreamStatus]]) -> dict[str, StreamStatus]:
    """Return at most MOST_STREAMS: those with something unread, then those that were read last."""
    chosen = heapq.nlargest(MOST_STREAMS, streams, key=lambda item: (item[1].unread, item[1].read_at or _DAWN))
    return dict(chosen)
