"""Stamps as microseconds since 1970: the parser reads each minute once, seconds and fractions are added side by side."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.lines import Flags, Integers, Octets, index_of, numbers_of
from engine.match.digits import ALIKE
from engine.parse.stamps import StampBounds
from engine.parse.times import is_repeated, names_offset, parse_stamp

NO_TIME = -(2**63)  # nobody knows: for the parser to judge
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECONDS = re.compile(rb"(?<!0)00?:00:(00)(?:[.,_:](0{1,9}))?")
_ISO_SECONDS = re.compile(rb".{17}(00)(?:[.,_](0{1,9}))?")
_MINUTE_S = 60
_MICRO_DIGITS = 6
_PROBED = 8  # of the stamps of a shape that the parser reads too
_SHAPES = 64  # in one block; what is in others is read one by one
_ZERO = ord("0")
_SEPARATE_RUNS = 8


class StampReader(Struct, frozen=True):
    """How the stamps of some lines are read.

    `taken`: when the lines were; it tells how late they can be, and the year of stamps that have none if no better `known`.
    """

    layout: str
    zone: tzinfo
    bounds: StampBounds
    taken: datetime | None
    known: datetime | None = None

    def read(self, stamps: pa.StringArray) -> Integers:
        """Return the time of each of `stamps`; NO_TIME where the parser has to be asked: it is none, or out of bounds, or of an
        hour that the zone had twice."""
        at = np.full(len(stamps), NO_TIME, np.int64)
        sizes = numbers_of(pc.binary_length(stamps))
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            if size:
                some = stamps if len(rows) == len(stamps) else stamps.take(index_of(rows))
                at[rows] = self._of_one_size(octets_of(some).reshape(len(rows), size))
        return at

    def _of_one_size(self, stamps: Octets) -> Integers:
        at = np.full(len(stamps), NO_TIME, np.int64)
        left = np.arange(len(stamps))
        digits = (stamps >= _ZERO) & (stamps <= ord("9"))
        shapes = np.where(digits, np.uint8(_ZERO), stamps)
        for _ in range(_SHAPES):
            if not len(left):
                return at
            alike = (shapes[left] == shapes[left[0]]).all(axis=1)
            rows, left = left[alike], left[~alike]
            at[rows] = self._of_one_shape(stamps[rows], shapes[rows[0]].tobytes())
        at[left] = self._one_by_one(stamps[left])
        return at

    def _of_one_shape(self, stamps: Octets, shape: bytes) -> Integers:
        zoned = names_offset(shape.decode(), self.layout)
        places = (_ISO_SECONDS.match if self.layout == "iso" else _SECONDS.search)(shape)
        if places is None or self.layout == "epoch_ms":
            return self._within(self._one_by_one(stamps), zoned)
        second, (begin, end) = places.start(1), places.span(2)
        added = _seconds(stamps, second, begin, end)
        minutes = stamps.copy()
        minutes[:, second : second + 2] = _ZERO
        if begin >= 0:
            minutes[:, begin:end] = _ZERO
        at = _by_value(minutes, self._minute)
        at[added < 0] = NO_TIME
        at[at != NO_TIME] += added[at != NO_TIME]
        probed = np.unique(np.linspace(0, len(stamps) - 1, _PROBED).astype(np.int64))
        if ((at[probed] != NO_TIME) & (at[probed] != self._one_by_one(stamps[probed]))).any():
            at = self._one_by_one(stamps)
        return self._within(at, zoned)

    def _within(self, at: Integers, zoned: bool) -> Integers:
        early = at < to_us(self.bounds.earliest)
        late = at > to_us(self.bounds.latest(self.taken, zoned))
        at[early | late] = NO_TIME
        return at

    def _minute(self, text: str) -> int:
        time = parse_stamp(text, self.layout, self.zone, self.known or self.bounds.ingest_time(self.taken))
        return NO_TIME if time is None or is_repeated(text, time, self.zone) else to_us(time)

    _parsed = _minute

    def _one_by_one(self, stamps: Octets) -> Integers:
        return np.array([self._parsed(stamp.tobytes().decode()) for stamp in stamps], np.int64)


def _seconds(stamps: Octets, second: int, begin: int, end: int) -> Integers:
    """Return seconds and fraction in microseconds; less than 0 for what is no second of a minute."""
    digits = stamps.astype(np.int64) - _ZERO
    seconds = digits[:, second] * 10 + digits[:, second + 1]
    micros = np.zeros(len(stamps), np.int64)
    for place in range(begin, min(end, begin + _MICRO_DIGITS)) if begin >= 0 else ():
        micros += digits[:, place] * 10 ** (_MICRO_DIGITS - 1 - (place - begin))
    return np.where(seconds < _MINUTE_S, seconds * 1_000_000 + micros, -1)


def _by_value(rows: Octets, read: Callable[[str], int]) -> Integers:
    """Return what `read` makes of each row, asked once for each that differs from the one before."""
    changes = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    firsts = np.flatnonzero(changes)
    known: dict[bytes, int] = {}
    values = []
    for at in firsts.tolist():
        text = rows[at].tobytes()
        if text not in known:
            known[text] = read(text.decode())
        values.append(known[text])
    return np.repeat(np.array(values, np.int64), np.diff(np.append(firsts, len(rows))))


def octets_of(texts: pa.StringArray) -> Octets:
    """Return the bytes of `texts`, one text after the other."""
    _, offsets, data = texts.buffers()
    borders = np.frombuffer(offsets, np.int32)
    begin, end = borders[texts.offset], borders[texts.offset + len(texts)]
    return np.frombuffer(data, np.uint8)[begin:end] if data is not None else np.zeros(0, np.uint8)


def offsets_of(texts: pa.StringArray) -> tuple[Integers, bytes]:
    """Return where each of `texts` begins, and the last ends, in the bytes that are returned with it."""
    _, offsets, data = texts.buffers()
    borders = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    begin, end = (int(borders[0]), int(borders[-1])) if len(borders) else (0, 0)
    return borders - begin, data[begin:end].to_pybytes() if data is not None else b""


def to_us(at: datetime) -> int:
    """Return the microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def to_datetime(at_us: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=at_us)


def masked(data: bytes) -> bytes:
    """Return `data` with every digit a 0."""
    return data.translate(ALIKE)


__all__ = ["NO_TIME", "Flags", "StampReader", "masked", "octets_of", "to_datetime", "to_us"]
