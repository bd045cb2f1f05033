"""Divides a stream that is several brokers' logs, one after another (`cat broker-*/* | tocsin scan -`), if that is certain.

The lines in which brokers print their ids show who writes. There is a border between two logs only where event time goes back:
it does not where several processes write into one stream, or lines were sorted by time, and such a stream is not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.bindings import SIGHTINGS, natural
from engine.model.matches import Match
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap
from engine.ports import Chunk

NAMES = "component:broker/names"
BACK = timedelta(seconds=60)  # clocks of one stream may go back by less
MOST_LINES = 50_000  # of a log between two borders that are read once more


class Naming(Struct, frozen=True, order=True):
    """A line in which a broker names itself. `at`: its event time."""

    number: int
    broker: str
    at: datetime


class StreamPart(Struct, frozen=True):
    """The lines of one broker in a stream: from line `number` on, to the next part."""

    number: int
    broker: str


class _Run(Struct, frozen=True):
    """Consecutive namings of one broker."""

    broker: str
    namings: tuple[Naming, ...]

    @property
    def earliest(self) -> datetime:
        return min(naming.at for naming in self.namings)

    @property
    def latest(self) -> datetime:
        return max(naming.at for naming in self.namings)


LinesBetween = Callable[[int, int], Iterable[RawLine]]  # takes the numbers of the first line and of the line after the last


class Namings:
    """Collects the lines in which brokers name themselves, by source. A source of several brokers is a mixture."""

    def __init__(self) -> None:
        self._by_source: dict[str, list[Naming]] = {}

    def add(self, match: Match) -> None:
        """Add a match; one of another kind, without a time or a line number, or of a container in a file, is ignored."""
        if match.rule_id == NAMES and match.dated and match.number and "#" not in match.source_id:
            naming = Naming(match.number, str(match.captures.get("member", "")), match.at)
            self._by_source.setdefault(match.source_id, []).append(naming)

    def mixtures(self) -> Mapping[str, tuple[Naming, ...]]:
        """Return the namings of every source in which several brokers do, in the order of its lines."""
        return {source: tuple(sorted(namings)) for source, namings in self._by_source.items() if len(brokers(namings)) > 1}


def brokers(namings: Iterable[Naming]) -> list[str]:
    """Return the brokers that name themselves often enough, in natural order."""
    counts: dict[str, int] = {}
    for naming in namings:
        counts[naming.broker] = counts.get(naming.broker, 0) + 1
    return sorted((broker for broker, number in counts.items() if number >= SIGHTINGS), key=natural)


def parts(namings: Sequence[Naming], lines: LinesBetween, plan: Plan) -> tuple[StreamPart, ...]:
    """Return the parts of a mixture, at least two, the first from line 1 on; an empty tuple when any border is unsure."""
    runs = _runs(namings)
    result = [StreamPart(1, runs[0].broker)]
    for before, after in pairwise(runs):
        border = _border(before, after, lines, plan) if after.earliest < before.latest - BACK else None
        if border is None:
            return ()
        result.append(StreamPart(border, after.broker))
    return tuple(result)


def divided(
    items: Iterable[Chunk | Progress], parts_by_source: Mapping[str, Sequence[StreamPart]]
) -> Iterator[Chunk | Progress]:
    """Yield `items` with the chunks of divided sources cut at the borders. The lines of a part are of a source named after file
    and broker, and keep offset and number."""
    for item in items:
        if isinstance(item, Chunk) and item.source_id in parts_by_source:
            yield from _cut(item, parts_by_source[item.source_id])
        else:
            yield item


def undivided(source: str, namings: Sequence[Naming]) -> str:
    """Return the sentence about a mixture that was not divided."""
    *others, last = brokers(namings)
    return (
        f"{source}: lines of brokers {', '.join(others)} and {last} are mixed; it is not sure which line is whose, so whether "
        "one of them fell silent is not judged; give the log of each as a file of its own"
    )


def _runs(namings: Sequence[Naming]) -> list[_Run]:
    runs: list[_Run] = []
    for naming in namings:
        if runs and runs[-1].broker == naming.broker:
            runs[-1] = replace(runs[-1], namings=(*runs[-1].namings, naming))
        else:
            runs.append(_Run(naming.broker, (naming,)))
    return runs


def _border(before: _Run, after: _Run, lines: LinesBetween, plan: Plan) -> int | None:
    """Return the number of the first line of `after`; None when several lines may be it.

    Without events between the two it is the naming line. Otherwise it is the only event there that is earlier than the one
    before it.
    """
    last, first = before.namings[-1].number, after.namings[0].number
    if first - last > MOST_LINES:
        return None
    events = decode(assemble(unwrap(lines(last, first + 1), plan.formats), plan.formats), plan.formats)
    stamped = [(e.number, e.timestamp) for e in events if isinstance(e, LogEvent) and e.timestamp is not None]
    between = [number for number, _ in stamped if last < number < first]
    if not between:
        return first
    back = [number for (_, earlier), (number, later) in pairwise(stamped) if later < earlier - BACK]
    return back[0] if len(back) == 1 else None


def _cut(chunk: Chunk, parts: Sequence[StreamPart]) -> Iterator[Chunk]:
    at, number = 0, chunk.number
    for place, part in enumerate(parts):
        following = parts[place + 1].number if place + 1 < len(parts) else None
        if following is not None and following <= number:
            continue
        end = len(chunk.data) if following is None else _line_start(chunk.data, at, following - number)
        if end > at:
            source, last = f"{chunk.source_id}#broker-{part.broker}", end == len(chunk.data)
            yield replace(
                chunk,
                source_id=source,
                offset=chunk.offset + at,
                data=chunk.data[at:end],
                number=number,
                end=chunk.end if last else None,
            )
        number += chunk.data.count(b"\n", at, end)
        at = end
        if at == len(chunk.data):
            return


def _line_start(data: bytes, at: int, lines: int) -> int:
    """Return where the line begins that is `lines` after the one at `at`; the end of `data` when it has fewer."""
    for _ in range(lines):
        end = data.find(b"\n", at)
        if end < 0:
            return len(data)
        at = end + 1
    return at
