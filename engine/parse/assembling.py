"""assemble: records in, blocks out. The lines of one event become one block: its stack trace, the reason on the next line, the
rest of its JSON document.

Where a block begins and ends depends only on the records of its own source, so a slice of a stream can be assembled by itself.
With `mid_stream=True` the records before the first header of a slice come out as one *unsettled* block, the head of the slice.
`join` puts the open last block of the slice before in front of that head, and `settle` divides the two as if the stream had
never been cut.
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
    """Yield the blocks of all sources, in order within a source; progress and ticks pass through unchanged.

    Progress that closes a source comes after the open block of that source. The end of the input closes all sources. A record
    that raises goes into `quarantine`; without one the error is raised.
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
    """The state of an Assembler between two lines.

    `open`: the open blocks. `met`: the sources of which it has had a record. `carried`: by source and by the name of the format
    that takes them, the labels that one line gives to the lines below it.
    """

    open: tuple[Block, ...] = ()
    met: tuple[str, ...] = ()
    carried: Mapping[str, Mapping[str, Labels]] = field(default_factory=dict)


class Assembler:
    """Assembles any number of interleaved sources.

    Args:
        formats: the layouts by which a header is recognised.
        mid_stream: whether the first line of a source may be in the middle of an event (see the module docstring).
    """

    def __init__(self, formats: Sequence[Format], mid_stream: bool = False) -> None:
        self._book = header_book(formats)
        self._mid_stream = mid_stream
        self._open: dict[str, OpenBlock] = {}
        self._met: set[str] = set()
        self._carried: dict[str, Mapping[str, Labels]] = {}  # by source, then by the name of the format that takes them

    def push(self, record: Record) -> list[Block]:
        """Add the next record of its source. Return the blocks that this completes: none or one; two when the record ends the
        open block and is a whole block itself."""
        open_block = self._open.get(record.source_id)
        try:
            return self._push(record)
        except Exception:
            if open_block is not None:
                self._open[record.source_id] = open_block  # the block goes on without this record
            raise

    def _push(self, record: Record) -> list[Block]:
        source_id = record.source_id
        layout = self._book.find(record.text)
        if layout is not None:
            record = self._labelled(record, layout)
        open_block = self._block_of(source_id)
        belongs = open_block is not None and open_block.belongs(record, layout is not None)
        if open_block is not None and belongs and open_block.has_room(record):
            open_block.add(record)
            return self.close(source_id) if open_block.complete else []
        completed = self.close(source_id, cut=belongs)
        opened = opened_by(record, layout is not None)
        if opened is None:
            return completed
        self._open[source_id] = opened
        return completed + self.close(source_id) if opened.complete else completed

    def flush(self, source_id: str | None = None) -> list[Block]:
        """Close and return the open blocks of `source_id` and of the containers that are printed into it; of every source when
        it is None."""
        closing = [s for s in self._open if source_id is None or s == source_id or s.startswith(f"{source_id}#")]
        return [block for s in closing for block in self.close(s)]

    def close(self, source_id: str, cut: bool = False) -> list[Block]:
        """Close the open block of one source and return it; an empty list when there is none. `cut`: a bound ended it early."""
        open_block = self._open.pop(source_id, None)
        return [open_block.block(cut)] if open_block is not None and open_block.records else []

    def open_block(self, source_id: str) -> Block | None:
        """Return the block that the next record of `source_id` may continue; None when there is none."""
        open_block = self._open.get(source_id)
        return open_block.block() if open_block is not None and open_block.records else None

    def open_blocks(self) -> Mapping[str, Block]:
        """Return the open blocks by source; sources without one are left out."""
        return {source_id: open_block.block() for source_id, open_block in self._open.items() if open_block.records}

    def snapshot(self) -> str:
        """Return the whole state as JSON."""
        return codec.dumps(Snapshot(tuple(self.open_blocks().values()), tuple(sorted(self._met)), self._carried))

    def restore(self, text: str) -> None:
        """Replace the whole state by one that `snapshot` returned. Raises msgspec's DecodeError for any other text."""
        state = codec.loads(text, Snapshot)
        self._open = {block.records[0].source_id: reopened(block) for block in state.open}
        self._met = set(state.met)
        self._carried = dict(state.carried)

    def _block_of(self, source_id: str) -> OpenBlock | None:
        """Return the open block of a source. In mid-stream the first record of a source opens the head of the slice."""
        open_block = self._open.get(source_id)
        if open_block is None and self._mid_stream and source_id not in self._met:
            open_block = self._open[source_id] = OpenHead()
        self._met.add(source_id)
        return open_block

    def _labelled(self, record: Record, layout: Format) -> Record:
        """Store the labels that `record` carries to the lines below it, and return it with those that a line above carries."""
        if layout.carries:
            header = self._book.read(record.text)
            labels = header.labels if header is not None else {}
            self._carried[record.source_id] = dict.fromkeys(layout.carries, labels)
        carried = self._carried.get(record.source_id, {}).get(layout.name)
        return replace(record, labels={**record.labels, **carried}) if carried else record


def join(tail: Block, head: Block) -> Block:
    """Return the open last block of one slice and the head of the next slice as one unsettled block.

    Raises ValueError when their sources differ, or when `head` does not lie behind `tail`: only contiguous slices join.
    """
    last, first = tail.records[-1], head.records[0]
    if last.source_id != first.source_id or last.offset >= first.offset:
        raise ValueError(f"{first.source_id} at {first.offset} does not follow {last.source_id} at {last.offset}")
    return Block(tail.records + head.records, tail.headed, unsettled=True)


def settle(block: Block, formats: Sequence[Format]) -> tuple[tuple[Block, ...], Block | None]:
    """Divide an unsettled block into events. No earlier record may be missing in front of it.

    Returns the complete blocks in order, and the block that later records may continue; None when there is none.
    """
    assembler = Assembler(formats)
    completed = [ended for record in block.records for ended in assembler.push(record)]
    return tuple(completed), assembler.open_block(block.records[0].source_id)
