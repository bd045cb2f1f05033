"""Bounded input with what needs no reading left out: it says what the stages of engine/pipeline.replay say of all of it.

They are those stages, but each line goes through all of them before the next one comes: the times of what is left out have to
arrive between two events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.match import Matcher, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import AnyEvent, Block, LogEvent, Progress, Record
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.ports import Chunk
from engine.quarantine import Quarantine, attempt

if TYPE_CHECKING:
    from engine.skim.alike import Told
    from engine.skim.sight import Sight
    from engine.skim.skimmer import Skimmer

SKIMMED_FROM_BYTES = 256 * 1024  # of input: less is read whole before what skimming needs is loaded

Observer = Callable[[AnyEvent, list[Match]], None]


class Whole:
    """Reads bounded input. `lines` counts its lines, `left_out` the events that needed no reading.

    Args:
        sight: gives how to skim, once there is enough input for that.
        observe: called with each event that is read, and its matches.
        quarantine: takes what raises, and all else goes on; without one it is raised.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        sight: Callable[[], Sight],
        observe: Observer,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._quarantine = quarantine
        self._plan, self._matcher, self._sight, self._observe = plan, matcher, sight, observe
        self._assembler, self._heard = Assembler(plan.formats), ActivityTracker()
        self._known: Sight | None = None
        self._skimmer: tuple[str, Skimmer] | None = None  # of the source that is being read
        self._bytes = 0
        self.lines = self.left_out = 0

    def read(self, items: Iterable[Chunk | Progress]) -> Iterator[Match | ActivitySpan | Progress]:
        """Yield what `items` say; each source is whole before the next one begins."""
        for item in items:
            if isinstance(item, Chunk):
                for piece in self._pieces(item):
                    yield from self._piece(piece)
                continue
            yield from self._events(self._assembler.flush(item.source_id) if item.closed else ())
            yield from self._heard.close()
            yield item
        yield from self._events(self._assembler.flush())
        yield from self._heard.close()

    def _pieces(self, chunk: Chunk) -> Iterator[Record | Told | ActivitySpan]:
        self._bytes += len(chunk.data)
        if self._bytes < SKIMMED_FROM_BYTES:
            for self.lines, line in enumerate(chunk.lines(), self.lines + 1):  # noqa: B020  (goes on counting)
                record = attempt(self._quarantine, "unwrap", line, unwrap_line, line, self._plan.formats)
                if record is not None:
                    yield record
            return
        skimmer = self._skimmer_of(chunk.source_id)
        lines, left_out = skimmer.lines, skimmer.left_out
        yield from skimmer.read([chunk])
        self.lines += skimmer.lines - lines
        self.left_out += skimmer.left_out - left_out

    def _skimmer_of(self, source_id: str) -> Skimmer:
        from engine.skim.skimmer import Skimmer  # noqa: PLC0415  (numpy, which a small scan does without)

        self._known = self._known or self._sight()
        if self._skimmer is None or self._skimmer[0] != source_id:
            self._skimmer = source_id, Skimmer(self._known, self._quarantine)
        return self._skimmer[1]

    def _piece(self, piece: Record | Told | ActivitySpan) -> Sequence[Match | ActivitySpan]:
        if isinstance(piece, Record):
            return self._events(attempt(self._quarantine, "assemble", piece, self._assembler.push, piece) or ())
        if isinstance(piece, ActivitySpan):
            self._heard.joined(piece)
            return ()
        before = self._events(closed) if (closed := self._assembler.close(piece.source_id)) else ()
        if piece.left_out is not None:
            self._heard.joined(piece.left_out)
        said = self._event(piece, piece.matches)
        return (*before, *said) if before else said

    def _events(self, blocks: Iterable[Block]) -> Sequence[Match | ActivitySpan]:
        formats, quarantine = self._plan.formats, self._quarantine
        events = (e for block in blocks for e in attempt(quarantine, "decode", block, decode_block, block, formats) or ())
        return [said for event in events for said in self._event(event, matched_of(self._matcher, event, quarantine))]

    def _event(self, event: AnyEvent, found: list[Match]) -> Sequence[Match | ActivitySpan]:
        spans = self._heard.event(event)
        attempt(self._quarantine, "observe", event if isinstance(event, LogEvent) else event.text, self._observe, event, found)
        return (*spans, *found) if spans else found
