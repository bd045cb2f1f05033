"""Open blocks: those that the next record may continue. One class for each kind of block decides which records belong to it
(by the rules in `continuation`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.model.records import Block, Record
from engine.parse.continuation import Braces, awaits_reason, continues, open_ended, opens_document, spaced, thrown

BLOCK_LINES = 2000
BLOCK_BYTES = 256 * 1024  # of text as UTF-8, line ends included


class OpenBlock(ABC):
    """The records of one block so far. `complete`: no further record can continue it."""

    headed = False

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.complete = False
        self._bytes = 0
        self._awaits_reason = False  # whether the reason that the last line announced is still to come

    def belongs(self, record: Record, has_header: bool) -> bool:
        """Return whether `record`, the next of its source, is part of this block."""
        if self.records and self.records[-1].partial:
            return True
        return not record.starts and not has_header and self._goes_on(record)

    def has_room(self, record: Record) -> bool:
        """Return whether `record` fits within the bounds. A record that belongs to the block but does not fit cuts it."""
        return len(self.records) < BLOCK_LINES and self._bytes + _size(record) <= BLOCK_BYTES

    def add(self, record: Record) -> None:
        """Append `record`."""
        self.records.append(record)
        self._bytes += _size(record)
        self._awaits_reason = awaits_reason(record.text, self._awaits_reason)

    def block(self, cut: bool = False) -> Block:
        """Return the records so far as a block. `cut`: a bound ended it early."""
        return Block(tuple(self.records), self.headed, cut)

    @abstractmethod
    def _goes_on(self, record: Record) -> bool:
        """Return whether `record`, which has no header and does not start an event by itself, continues this block."""


class Headed(OpenBlock):
    """An event that began with a header. All records up to the next header belong to it."""

    headed = True

    def _goes_on(self, record: Record) -> bool:
        return True


class Bare(OpenBlock):
    """Bare text. The lines that look like its continuation belong to it. A blank line ends it, except a single one where a
    reason was announced or between the lines of a stack trace."""

    def _goes_on(self, record: Record) -> bool:
        last = self.records[-1]
        if blank(record):
            return open_ended(last.text) or spaced(last.text)
        if blank(last):
            return spaced(record.text) or (self._awaits_reason and thrown(record.text))
        return self._awaits_reason or continues(record.text)


class OpenDocument(OpenBlock):
    """A JSON document. All records until its braces balance belong to it."""

    def __init__(self, headed: bool) -> None:
        super().__init__()
        self.headed = headed
        self._braces = Braces()

    def add(self, record: Record) -> None:
        """Append `record`; the one that closes the last brace completes the document."""
        super().add(record)
        self.complete = self._braces.read(record.text)

    def _goes_on(self, record: Record) -> bool:
        return True


class OpenHead(OpenBlock):
    """The head of a slice: its records before the first header. Which events they belong to depends on the slice before.

    Once the head is longer than a block may be, the bounds have ended any block that was open before the slice. From then on a
    line that looks like the start of bare text does start it, unless a JSON document may be open. So the head of a source
    without any headers stays about as small as a block.
    """

    def __init__(self) -> None:
        super().__init__()
        self._may_be_document = False

    def has_room(self, record: Record) -> bool:
        """Return True: the bounds are applied when the head is settled."""
        return True

    def add(self, record: Record) -> None:
        """Append `record`."""
        super().add(record)
        self._may_be_document = self._may_be_document or opens_document(record.text)

    def block(self, cut: bool = False) -> Block:
        """Return the records so far as an unsettled block."""
        return Block(tuple(self.records), headed=False, cut=cut, unsettled=True)

    def _goes_on(self, record: Record) -> bool:
        longer = len(self.records) > BLOCK_LINES or self._bytes > BLOCK_BYTES
        return self._may_be_document or self._awaits_reason or not longer or blank(record) or continues(record.text)


def opened_by(record: Record, has_header: bool) -> OpenBlock | None:
    """Return the block that `record` begins; None when the record is blank."""
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
    """Return the open block that an assembler had before it returned `block`."""
    first, *following = block.records
    opened = OpenHead() if block.unsettled else opened_by(first, block.headed and not first.starts) or Bare()
    for record in following if opened.records else block.records:
        opened.add(record)
    return opened


def blank(record: Record) -> bool:
    """Return whether the record's line holds nothing but white space."""
    return not record.text.strip()


def _size(record: Record) -> int:
    text = record.text
    return (len(text) if text.isascii() else len(text.encode())) + 1
