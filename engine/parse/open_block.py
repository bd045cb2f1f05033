"""Blocks that are still growing. One class a kind; each says which records belong to it (see the rules in `continuation`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.model.records import Block, Record
from engine.parse.continuation import Braces, awaits_reason, continues, open_ended, opens_document, spaced, thrown

BLOCK_LINES = 2000
BLOCK_BYTES = 256 * 1024  # of text as UTF-8, line ends included


class OpenBlock(ABC):
    """The records of one block so far. `complete`: nothing can continue it, whatever comes."""

    headed = False

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.complete = False
        self._bytes = 0
        self._awaits = False  # the reason at the end of a traceback

    def belongs(self, record: Record, has_header: bool) -> bool:
        """Tell whether `record`, the next of its source, is part of this block."""
        if self.records and self.records[-1].partial:
            return True
        return not record.starts and not has_header and self._goes_on(record)

    def has_room(self, record: Record) -> bool:
        """Tell whether `record` fits within the bounds; what belongs and does not fit cuts the block."""
        return len(self.records) < BLOCK_LINES and self._bytes + _size(record) <= BLOCK_BYTES

    def add(self, record: Record) -> None:
        """Take `record` in."""
        self.records.append(record)
        self._bytes += _size(record)
        self._awaits = awaits_reason(record.text, self._awaits)

    def block(self, cut: bool = False) -> Block:
        """Return what is held."""
        return Block(tuple(self.records), self.headed, cut)

    @abstractmethod
    def _goes_on(self, record: Record) -> bool:
        """Tell whether a record that begins nothing continues this block."""


class Headed(OpenBlock):
    """An event that began with a header: takes everything up to the next one."""

    headed = True

    def _goes_on(self, record: Record) -> bool:
        return True


class Bare(OpenBlock):
    """Bare text: takes the lines that look like its continuation. A blank line ends it, but one alone where a reason was
    announced, or between the pieces of a stack trace."""

    def _goes_on(self, record: Record) -> bool:
        last = self.records[-1]
        if blank(record):
            return open_ended(last.text) or spaced(last.text)
        if blank(last):
            return spaced(record.text) or (self._awaits and thrown(record.text))
        return self._awaits or continues(record.text)


class OpenDocument(OpenBlock):
    """A JSON document: takes everything until its braces balance."""

    def __init__(self, headed: bool) -> None:
        super().__init__()
        self.headed = headed
        self._braces = Braces()

    def add(self, record: Record) -> None:
        """Take `record` in; the one that closes the last brace completes the document."""
        super().add(record)
        self.complete = self._braces.read(record.text)

    def _goes_on(self, record: Record) -> bool:
        return True


class OpenHead(OpenBlock):
    """What a slice holds before its first header: whose it is, only the slice before knows.

    Once the head is longer than any block may be, whatever was open before the slice has been cut; from then on a line that
    begins bare text is sure to begin it, unless a JSON document may be open. So the head of a source without any headers
    stays about as small as a block.
    """

    def __init__(self) -> None:
        super().__init__()
        self._document = False

    def has_room(self, record: Record) -> bool:
        """Return True: the bounds are applied when the head is settled."""
        return True

    def add(self, record: Record) -> None:
        """Take `record` in."""
        super().add(record)
        self._document = self._document or opens_document(record.text)

    def block(self, cut: bool = False) -> Block:
        """Return what is held, as a block to be settled."""
        return Block(tuple(self.records), headed=False, cut=cut, unsettled=True)

    def _goes_on(self, record: Record) -> bool:
        longer = len(self.records) > BLOCK_LINES or self._bytes > BLOCK_BYTES
        return self._document or self._awaits or not longer or blank(record) or continues(record.text)


def opened_by(record: Record, has_header: bool) -> OpenBlock | None:
    """Return the block that `record` begins; None when it is blank and begins nothing."""
    opened: OpenBlock
    if opens_document(record.text) and not has_header:
        opened = OpenDocument(headed=record.starts)
    elif record.starts or has_header:
        opened = Headed()
    elif blank(record):
        return None
    else:
        opened = Bare()
    opened.add(record)
    return opened


def reopened(block: Block) -> OpenBlock:
    """Return `block` as it was before it was taken out of an assembler."""
    first, *others = block.records
    opened = OpenHead() if block.unsettled else opened_by(first, block.headed and not first.starts) or Bare()
    for record in others if opened.records else block.records:
        opened.add(record)
    return opened


def blank(record: Record) -> bool:
    """Tell whether the record's line holds nothing but white space."""
    return not record.text.strip()


def _size(record: Record) -> int:
    text = record.text
    return (len(text) if text.isascii() else len(text.encode())) + 1
