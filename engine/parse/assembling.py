"""assemble: records in, blocks out; a stack trace, the reason on the next line and a JSON document become one block.

What is a block depends on the source's own records alone, so a slice of a stream can be assembled by itself: with
`mid_stream=True` the records before the first header of a slice come out as one *unsettled* block, its head. `join` puts the
open end of the slice before in front of it, and `settle` divides the two as if the stream had never been cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from engine import codec
from engine.model.records import Block, Labels, Progress, Record, Tick
from engine.model.rules import Format
from engine.parse.headers import header_book
from engine.parse.open_block import OpenBlock, OpenHead, opened_by, reopened
from engine.quarantine import Quarantine, attempt


def assemble(
    records: Iterable[Record | Progress | Tick], formats: Sequence[Format], quarantine: Quarantine | None = None
) -> Iterator[Block | Progress | Tick]:
    """Yield the blocks of all sources, each source's in order; progress and ticks pass through untouched.

    A source that is closed has its open block yielded before that progress; the end of the input closes all.
    """
    assembler = Assembler(formats)
    for item in records:
        if isinstance(item, Record):
            yield from attempt(quarantine, "assemble", item, assembler.push, item) or ()
            continue
        if isinstance(item, Progress) and item.closed:
            yield from assembler.flush(item.source_id)
        yield item
    yield from assembler.flush()


class Snapshot(Struct, frozen=True):
    """What an Assembler holds between two lines: the open blocks, the sources it has met, the labels that dumps carry on."""

    open: tuple[Block, ...] = ()
    met: tuple[str, ...] = ()
    carried: Mapping[str, Mapping[str, Labels]] = field(default_factory=dict)


class Assembler:
    """Assembles any number of interleaved sources.

    Args:
        formats: what a header looks like.
        mid_stream: the first line of a source may be in the middle of an event; see the module's words on slices.
    """

    def __init__(self, formats: Sequence[Format], mid_stream: bool = False) -> None:
        self._book = header_book(formats)
        self._mid_stream = mid_stream
        self._open: dict[str, OpenBlock] = {}
        self._met: set[str] = set()
        self._carried: dict[str, Mapping[str, Labels]] = {}  # by source, then by the format that takes them

    def push(self, record: Record) -> list[Block]:
        """Take in the next record of its source; return the blocks that it completes, none or one, or two when it is a whole
        block by itself."""
        held = self._open.get(record.source_id)
        try:
            return self._push(record)
        except Exception:
            if held is not None:
                self._open[record.source_id] = held  # it is without this record, and not lost for it
            raise

    def _push(self, record: Record) -> list[Block]:
        source_id = record.source_id
        found = self._book.find(record.text)
        if found is not None:
            record = self._labelled(record, found)
        held = self._held(source_id)
        belongs = held is not None and held.belongs(record, found is not None)
        if held is not None and belongs and held.has_room(record):
            held.add(record)
            return self.close(source_id) if held.complete else []
        done = self.close(source_id, cut=belongs)
        opened = opened_by(record, found is not None)
        if opened is None:
            return done
        self._open[source_id] = opened
        return done + self.close(source_id) if opened.complete else done

    def flush(self, source_id: str | None = None) -> list[Block]:
        """Close the open blocks of `source_id` and the containers printed into it, or of every source, and return them."""
        closing = [s for s in self._open if source_id is None or s == source_id or s.startswith(f"{source_id}#")]
        return [block for s in closing for block in self.close(s)]

    def close(self, source_id: str, cut: bool = False) -> list[Block]:
        """Close the open block of one source, which ended here or was cut, and return it, if there is one."""
        held = self._open.pop(source_id, None)
        return [held.block(cut)] if held is not None and held.records else []

    def open_block(self, source_id: str) -> Block | None:
        """Return the block that the next record of `source_id` may still continue."""
        held = self._open.get(source_id)
        return held.block() if held is not None and held.records else None

    def open_blocks(self) -> Mapping[str, Block]:
        """Return the open block of every source that has one."""
        return {source_id: held.block() for source_id, held in self._open.items() if held.records}

    def snapshot(self) -> str:
        """Return everything held, as JSON."""
        return codec.dumps(Snapshot(tuple(self.open_blocks().values()), tuple(sorted(self._met)), self._carried))

    def restore(self, text: str) -> None:
        """Hold what `snapshot` returned, and nothing else. Raises msgspec's DecodeError when it is not one."""
        held = codec.loads(text, Snapshot)
        self._open = {block.records[0].source_id: reopened(block) for block in held.open}
        self._met = set(held.met)
        self._carried = dict(held.carried)

    def _held(self, source_id: str) -> OpenBlock | None:
        """Return the open block of a source; the first time in mid-stream, the head of the slice."""
        held = self._open.get(source_id)
        if held is None and self._mid_stream and source_id not in self._met:
            held = self._open[source_id] = OpenHead()
        self._met.add(source_id)
        return held

    def _labelled(self, record: Record, found: Format) -> Record:
        """Note the labels that a line carries to those below it, and give a line those it takes."""
        if found.carries:
            header = self._book.read(record.text)
            carried = header.labels if header is not None else {}
            self._carried[record.source_id] = dict.fromkeys(found.carries, carried)
        taken = self._carried.get(record.source_id, {}).get(found.name)
        return replace(record, labels={**record.labels, **taken}) if taken else record


def join(tail: Block, head: Block) -> Block:
    """Return the open end of one slice and the head of the next as one unsettled block.

    Raises ValueError when they are not of one source, or when `head` does not lie behind `tail`: only contiguous slices join.
    """
    last, first = tail.records[-1], head.records[0]
    if last.source_id != first.source_id or last.offset >= first.offset:
        raise ValueError(f"{first.source_id} at {first.offset} does not follow {last.source_id} at {last.offset}")
    return Block(tail.records + head.records, tail.headed, unsettled=True)


def settle(block: Block, formats: Sequence[Format]) -> tuple[tuple[Block, ...], Block | None]:
    """Divide an unsettled block whose first record nothing precedes any more.

    Returns the blocks that are complete, in order, and the last one when later records could still continue it.
    """
    assembler = Assembler(formats)
    done = [finished for record in block.records for finished in assembler.push(record)]
    return tuple(done), assembler.open_block(block.records[0].source_id)
