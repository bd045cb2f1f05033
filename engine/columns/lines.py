"""lines: a block of bytes as an array of lines, clean and valid UTF-8, each with the place that it came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import re2
from msgspec import Struct

from engine.model.records import RawLine
from engine.parse.lines import LINE_BYTES, decode_line, plain
from engine.parse.stamps import EARLIEST, LATEST
from engine.ports import Chunk

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]

# in place of a time in microseconds; every time is later than these
NO_TIME = -(2**63)  # it is unknown; of a stamp: the parser has to read it
MISDATED = NO_TIME + 1  # the stamp is out of bounds
UNDATED = NO_TIME + 2  # there is no stamp, or a text that is no stamp
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# what engine/parse/lines changes in a line: controls, marks of bold and of colours; a byte order mark; bytes that are no UTF-8
_UNCLEAN = r"[\x00-\x08\x0b-\x1f\x7f]|\*\*|</|<pre|\xef\xbb\xbf|\xc2[\x80-\x9f]"
_BELOW_BLANK = 32


class Lines(Struct, frozen=True, dict=True):
    """The lines of chunks, all of one source together and in order.

    Attributes:
        chunks: the chunks, those of one source together.
        data: the clean text of all lines as UTF-8, each with its line end; line i begins at `starts[i]`.
        original: the bytes of the chunks; line i begins at `placed[i]`.
        firsts: the first byte of each chunk in `original`.
        numbers: the first line of each chunk, and the number of all lines.
    """

    chunks: Sequence[Chunk]
    data: bytes
    starts: Integers
    original: bytes
    placed: Integers
    firsts: Integers
    numbers: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def per_chunk(self) -> Integers:
        """The number of lines of each chunk."""
        counts: Integers = np.diff(self.numbers)
        return counts

    @cached_property
    def ingested_us(self) -> Integers:
        """When each line was ingested, in microseconds since 1970; NO_TIME where that is unknown or no honest time."""
        taken = np.concatenate([self._ingested_us(number) for number in range(len(self.chunks))])
        taken[(taken < to_us(EARLIEST)) | (taken >= to_us(LATEST))] = NO_TIME
        return taken

    def raw(self, line: int) -> RawLine:
        """Return a line as it arrived."""
        at = int(np.searchsorted(self.firsts, self.placed[line], side="right")) - 1
        chunk, begin = self.chunks[at], int(self.placed[line])
        within = begin - int(self.firsts[at])
        offset, taken = chunk.place(within)
        value = self.original[begin : int(self.placed[line + 1])].rstrip(b"\n").rstrip(b"\r")
        number = chunk.number + line - int(self.numbers[at]) if chunk.number else 0
        return RawLine(chunk.source_id, offset, value, number, taken, chunk.labels, chunk.origin(within))

    def _ingested_us(self, number: int) -> Integers:
        """Return when the lines of a chunk were ingested."""
        chunk, count = self.chunks[number], int(self.per_chunk[number])
        if chunk.records is None:
            return np.full(count, NO_TIME if chunk.ingested_at is None else to_us(chunk.ingested_at), np.int64)
        first = int(self.numbers[number])
        within = self.placed[first : first + count] - self.firsts[number]
        of_line = np.searchsorted(np.array(chunk.records.begins, np.int64), within, side="right") - 1
        taken: Integers = np.array(chunk.records.times_us, np.int64)[of_line]
        return taken


def lines_of(chunks: Sequence[Chunk]) -> Lines:
    """Return the lines of `chunks`; those of one source are in order."""
    chunks = _by_source(chunks)
    pieces = [chunk.data if chunk.data.endswith(b"\n") or not chunk.data else chunk.data + b"\n" for chunk in chunks]
    original = b"".join(pieces)
    placed = line_starts(original)
    firsts = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    numbers = np.searchsorted(placed, firsts)
    data = cleaned(original, placed)
    starts = placed if data is original else line_starts(data)
    return Lines(chunks, data, starts, original, placed, firsts[:-1], numbers)


def _by_source(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    by_source: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_source.setdefault(chunk.source_id, []).append(chunk)
    return [chunk for of_source in by_source.values() for chunk in of_source]


def to_us(at: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def to_datetime(at_us: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=at_us)


def line_starts(data: bytes) -> Integers:
    """Return where each line of `data` begins, and its end; `data` is empty or ends in a line end."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    return np.concatenate((np.zeros(1, np.int64), ends + 1))


def cleaned(data: bytes, starts: Integers) -> bytes:
    """Return `data` with as many lines, each as engine/parse/lines makes it; the same object when nothing is to be changed."""
    longest = int(np.diff(starts).max(initial=0))
    if b"\r" in data:
        data = re.sub(rb"\r+\n", b"\n", data)
        starts = line_starts(data)
    valid = data.isascii() or _is_utf8(data)
    if not valid or longest > LINE_BYTES or _has_marks(data, len(starts) - 1):
        return _line_by_line(data, starts, valid)
    return data


@cache
def _unclean() -> re2._Regexp:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(_UNCLEAN.encode("latin-1"), options)


def _is_utf8(data: bytes) -> bool:
    try:
        strings(data, np.array([0, len(data)])).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_marks(data: bytes, lines: int) -> bool:
    """Tell whether something in `data` may have to be changed."""
    octets = np.frombuffer(data, np.uint8)
    low = int(np.count_nonzero(octets < _BELOW_BLANK))
    if low != lines + int(np.count_nonzero(octets == ord("\t"))) or b"\x7f" in data:
        return True
    doubled = b"*" in data and _follows(octets, b"*", b"*")
    tagged = b"<" in data and _follows(octets, b"<", b"/p")
    return (doubled or tagged or not data.isascii()) and _unclean().search(data) is not None


def _follows(octets: Octets, first: bytes, second: bytes) -> bool:
    """Tell whether one of the bytes `second` stands behind the byte `first`; the last byte is a line end."""
    return bool(np.isin(octets[np.flatnonzero(octets == ord(first)) + 1], list(second)).any())


def _line_by_line(data: bytes, starts: Integers, valid: bool) -> bytes:
    """Clean the lines that need it."""
    sizes = np.diff(starts)
    odd = sizes > LINE_BYTES
    positions = np.array([hit.start() for hit in _unclean().finditer(data)], np.int64)
    odd[np.searchsorted(starts, positions, side="right") - 1] = True
    if not valid:
        odd |= np.maximum.reduceat(np.frombuffer(data, np.uint8), starts[:-1]) > 127 if len(sizes) else odd
    pieces: list[bytes] = []
    at = 0
    for line in np.flatnonzero(odd).tolist():
        begin, end = int(starts[line]), int(starts[line + 1])
        text, _ = decode_line(data[begin : end - 1])
        pieces += (data[at:begin], plain(text).encode("utf-8", "replace"), b"\n")
        at = end
    pieces.append(data[at:])
    return b"".join(pieces)


def strings(data: Any, starts: Integers) -> pa.StringArray:
    """Return the texts between `starts` in `data`, which is valid UTF-8, without a copy."""
    offsets = pa.py_buffer(starts.astype(np.int32))
    return pa.StringArray.from_buffers(len(starts) - 1, offsets, pa.py_buffer(data))


# pa.array, pa.scalar and to_numpy import pandas, which costs as much as to read 100,000 lines


def index_of(rows: Integers) -> pa.Int64Array:
    """Return numbers as an Arrow array."""
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def mask_of(flags: Flags) -> pa.BooleanArray:
    """Return flags as an Arrow array."""
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(np.packbits(flags, bitorder="little"))])


def texts_of(texts: Sequence[str]) -> pa.StringArray:
    """Return texts as an Arrow array; half a surrogate pair, which no text can hold, is a question mark."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return strings(b"".join(encoded), np.cumsum([0, *map(len, encoded)]))


def with_behind(texts: pa.StringArray, suffix: str) -> pa.StringArray:
    """Return texts with something behind each."""
    nothing, behind = texts_of(["", suffix])
    return pc.binary_join_element_wise(texts, nothing, behind)


def flags_of(flags: pa.BooleanArray) -> Flags:
    """Return an Arrow array without nulls as one of numpy."""
    bits = np.frombuffer(flags.buffers()[1], np.uint8) if len(flags) else np.zeros(0, np.uint8)
    return np.unpackbits(bits, bitorder="little")[flags.offset : flags.offset + len(flags)].view(np.bool_)


def numbers_of(numbers: pa.Array) -> Integers:
    """Return an Arrow array of whole numbers as one of numpy, a null as 0."""
    width = np.dtype(f"i{numbers.type.bit_width // 8}")
    held = np.frombuffer(numbers.buffers()[1], width) if len(numbers) else np.zeros(0, width)
    values: Integers = held[numbers.offset : numbers.offset + len(numbers)].astype(np.int64)
    return np.where(flags_of(numbers.is_valid()), values, 0) if numbers.null_count else values


def without_ends(data: bytes, starts: Integers) -> pa.StringArray:
    """Return the texts of rows without their line ends."""
    return pc.ascii_rtrim(strings(data, starts), "\n")
