"""stamps: columns of stamps to microseconds since 1970. The parser reads each minute once; seconds and fractions are added by
array arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.lines import (
    MISDATED,
    NO_TIME,
    UNDATED,
    Flags,
    Integers,
    Lines,
    Octets,
    index_of,
    numbers_of,
    strings,
    to_datetime,
    to_us,
)
from engine.match.digits import ALIKE
from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, NEAR_LABEL, TIMEZONE_LABEL, Labels, Record
from engine.parse.stamps import HALF_A_YEAR, LATEST, ZONES, StampBounds, bounds_of
from engine.parse.times import is_repeated, names_offset, parse_stamp, zone_of
from engine.parse.wrappers.structured_json import SECONDS_DIGITS, epoch_text

_CLOCK = (TIMEZONE_LABEL, EARLIEST_LABEL, AHEAD_LABEL, NEAR_LABEL)  # the labels that the time of a stamp depends on
_DAY_US = 86_400_000_000
YEARLESS = ("month_day", "twelve_hour")  # layouts of stamps that may have no year
_SECONDS = re.compile(rb"(?<!0)00?:00:(00)(?:[.,_:](0{1,9}))?")
_ISO_SECONDS = re.compile(rb".{17}(00)(?:[.,_](0{1,9}))?")
_MICROSECOND = timedelta(microseconds=1)
_MINUTE_S = 60
_MICRO_DIGITS = 6
_PROBED = 8  # stamps of a shape that the parser reads too
_SHAPES = 64  # in one block; stamps of further shapes are read one by one
_MOST_AHEAD_US = 10**17
_ZERO = ord("0")
_LAST_ASCII = 127
_EXACT = 2**53  # whole numbers below it are floats too
_LEAST_PLAIN = 1e-4  # Python prints smaller floats with an exponent, which the parser may not read
FROM_MILLIS = 10 ** (SECONDS_DIGITS - 1)
_FROM_MICROS = 10**15
_MILLIS_A_SECOND = 1000
_LATE_S = 2.5e11  # about the year 9892


class StampReader(Struct, frozen=True):
    """Reads stamps in one layout, of lines in one zone and with the same bounds.

    `reference` gives its year to a stamp without one; None: such a stamp is not a time.
    """

    layout: str
    zone: tzinfo
    bounds: StampBounds
    reference: datetime | None = None

    def read(self, stamps: pa.Array, ingested_us: Integers) -> Integers:
        """Return the time of each stamp; MISDATED where it is out of bounds, UNDATED where it is not a time, and NO_TIME where
        the parser has to read it: it is in an hour that the zone had twice, in a leap second, or not in ASCII.

        Args:
            stamps: texts, or numbers of a document.
            ingested_us: when the line of each stamp was ingested; NO_TIME where that is unknown.
        """
        if not pa.types.is_string(stamps.type):
            return self._within(_of_numbers(stamps), ingested_us, zoned=True)
        at = np.full(len(stamps), NO_TIME, np.int64)
        sizes = numbers_of(pc.binary_length(stamps))
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            if size:
                of_size = stamps if len(rows) == len(stamps) else stamps.take(index_of(rows))
                at[rows] = self._of_one_size(octets_of(of_size).reshape(len(rows), size), ingested_us[rows])
        return at

    def _of_one_size(self, stamps: Octets, ingested_us: Integers) -> Integers:
        at = np.full(len(stamps), NO_TIME, np.int64)
        left = np.arange(len(stamps))
        digits = (stamps >= _ZERO) & (stamps <= ord("9"))
        shapes = np.where(digits, np.uint8(_ZERO), stamps)
        for _ in range(_SHAPES):
            if not len(left):
                return at
            alike = (shapes[left] == shapes[left[0]]).all(axis=1)
            rows, left = left[alike], left[~alike]
            at[rows] = self._of_one_shape(stamps[rows], shapes[rows[0]].tobytes(), ingested_us[rows])
        zoned = np.array([names_offset(stamp.tobytes().decode(), self.layout) for stamp in stamps[left]], np.bool_)
        at[left] = self._within(self._one_by_one(stamps[left]), ingested_us[left], zoned)
        return at

    def _of_one_shape(self, stamps: Octets, shape: bytes, ingested_us: Integers) -> Integers:
        if max(shape, default=0) > _LAST_ASCII:
            return np.full(len(stamps), NO_TIME, np.int64)
        if self.layout == "epoch_ms":
            return self._within(_of_epochs(stamps, shape), ingested_us, zoned=True)
        zoned = names_offset(shape.decode(), self.layout)
        places = (_ISO_SECONDS.match if self.layout == "iso" else _SECONDS.search)(shape)
        if places is None:
            return self._within(self._one_by_one(stamps), ingested_us, zoned)
        second, (begin, end) = places.start(1), places.span(2)
        added = _seconds(stamps, second, begin, end)
        minutes = stamps.copy()
        minutes[:, second : second + 2] = _ZERO
        if begin >= 0:
            minutes[:, begin:end] = _ZERO
        at = _by_value(minutes, self._time)
        at[added < 0] = NO_TIME
        at[at > UNDATED] += added[at > UNDATED]
        probed = np.unique(np.linspace(0, len(stamps) - 1, _PROBED).astype(np.int64))
        if ((at[probed] != NO_TIME) & (at[probed] != self._one_by_one(stamps[probed]))).any():
            at = self._one_by_one(stamps)
        return self._within(at, ingested_us, zoned)

    def _within(self, at: Integers, ingested_us: Integers, zoned: bool | Flags) -> Integers:
        ahead_us, more_us = (
            min(ahead // _MICROSECOND, _MOST_AHEAD_US) for ahead in (self.bounds.ahead, self.bounds.ahead + ZONES)
        )
        latest = np.where(ingested_us == NO_TIME, to_us(LATEST), ingested_us + np.where(zoned, ahead_us, more_us))
        outside = (at > UNDATED) & ((at < to_us(self.bounds.earliest)) | (at > latest))
        return np.where(outside, MISDATED, at)

    def _time(self, text: str) -> int:
        time = parse_stamp(text, self.layout, self.zone, self.reference)
        if time is None:
            return UNDATED if text.isascii() else NO_TIME
        return NO_TIME if is_repeated(text, time, self.zone) else to_us(time)

    def _one_by_one(self, stamps: Octets) -> Integers:
        return np.array([self._time(stamp.tobytes().decode()) for stamp in stamps], np.int64)


def read_stamps(
    lines: Lines,
    rows: Integers,
    label_codes: Integers,
    labels: Sequence[Labels],
    stamps: pa.Array,
    layout: str,
    wrapped: Integers | None = None,
) -> Integers:
    """Return the times of the stamps of some lines; where there is none as StampReader does.

    Lines whose labels name the same zone and bounds are read together, whatever sources they are of.

    Args:
        rows: the lines, by number.
        label_codes: the number of the labels of each line in `labels`.
        wrapped: the time of the wrapper of each, UNDATED without one: it gives the year to a stamp without one. Where there is
            none the ingest time does.
    """
    at_us = np.full(len(rows), NO_TIME, np.int64)
    kinds: dict[tuple[str, ...], int] = {}
    kind_of = np.zeros(len(labels), np.int64)
    for number in np.unique(label_codes).tolist():
        kind_of[number] = kinds.setdefault(tuple(labels[number].get(name, "") for name in _CLOCK), len(kinds))
    which = kind_of[label_codes]
    for kind in range(len(kinds)):
        own = np.flatnonzero(which == kind)
        part = stamps if len(own) == len(rows) else stamps.take(index_of(own))
        at_us[own] = _of_one_clock(
            lines, rows[own], labels[label_codes[own[0]]], part, layout, None if wrapped is None else wrapped[own]
        )
    return at_us


def _of_one_clock(
    lines: Lines, rows: Integers, labels: Labels, stamps: pa.Array, layout: str, wrapped: Integers | None
) -> Integers:
    """Return the times of the stamps of lines in one zone and with the same bounds."""
    zone, bounds, taken = zone_of(labels.get(TIMEZONE_LABEL, "")), bounds_of(labels), lines.ingested_us[rows]
    if layout not in YEARLESS:
        return StampReader(layout, zone, bounds).read(stamps, taken)
    at_us = np.full(len(rows), NO_TIME, np.int64)
    own_latest = taken if bounds.near is None else _no_later(taken, to_us(bounds.near + HALF_A_YEAR))
    references = own_latest if wrapped is None else np.where(wrapped > UNDATED, wrapped, own_latest)
    days = references // _DAY_US
    for day in np.unique(days[references != NO_TIME]).tolist():
        own = np.flatnonzero((days == day) & (references != NO_TIME))
        part = stamps if len(own) == len(rows) else stamps.take(index_of(own))
        first, last = (
            StampReader(layout, zone, bounds, to_datetime(reference)).read(part, taken[own])
            for reference in (int(references[own].min()), int(references[own].max()))
        )
        at_us[own] = np.where(first == last, first, NO_TIME)
    return at_us


def _no_later(ingested_us: Integers, latest_us: int) -> Integers:
    return np.where(ingested_us == NO_TIME, latest_us, np.minimum(ingested_us, latest_us))


def _of_numbers(numbers: pa.Array) -> Integers:
    """Return the times of numbers of documents since 1970, by the rule of structured_json."""
    values = _values_of(numbers)
    sizes = np.abs(values)
    if values.dtype == np.float64:
        plain, units = (values >= _LEAST_PLAIN) & (values < FROM_MILLIS), np.ones(len(values))
    else:
        plain, units = (values >= 0) & (values < _EXACT), np.where(values < FROM_MILLIS, 1, _MILLIS_A_SECOND)
        units[(values >= _FROM_MICROS) & (values < 10 * _FROM_MICROS)] = 1_000_000
    seconds = values / units
    plain &= seconds < _LATE_S
    at = np.full(len(values), UNDATED, np.int64)
    at[plain] = _rounded(seconds[plain])
    times: dict[int | float, int] = {}
    for row in np.flatnonzero(~plain & np.isfinite(sizes)).tolist():
        value = values[row].item()
        if value not in times:
            times[value] = _epoch(epoch_text(value))
        at[row] = times[value]
    return at


def _of_epochs(stamps: Octets, shape: bytes) -> Integers:
    """Return the times of texts of one shape that count from 1970."""
    if re.fullmatch(rb"0{1,10}\.0{1,9}", shape):
        texts = strings(stamps.tobytes(), np.arange(len(stamps) + 1) * stamps.shape[1])
        return _rounded(_values_of(pc.cast(texts, pa.float64())))
    return np.array([_epoch(stamp.tobytes().decode()) for stamp in stamps], np.int64)


def _epoch(text: str) -> int:
    time = parse_stamp(text, "epoch_ms")
    return UNDATED if time is None else to_us(time)


def _rounded(seconds: npt.NDArray[np.float64]) -> Integers:
    """Return seconds as microseconds, rounded as datetime.fromtimestamp does."""
    fractions, whole = np.modf(seconds)
    times: Integers = whole.astype(np.int64) * 1_000_000 + np.rint(fractions * 1e6).astype(np.int64)
    return times


def _values_of(numbers: pa.Array) -> Any:
    """Return an Arrow array of numbers without nulls as one of numpy."""
    width = np.dtype(np.float64 if pa.types.is_floating(numbers.type) else np.int64)
    held = np.frombuffer(numbers.buffers()[1], width) if len(numbers) else np.zeros(0, width)
    return held[numbers.offset : numbers.offset + len(numbers)]


def _seconds(stamps: Octets, second: int, begin: int, end: int) -> Integers:
    """Return the seconds and fractions of stamps in microseconds; -1 where the seconds are more than 59."""
    digits = stamps.astype(np.int64) - _ZERO
    seconds = digits[:, second] * 10 + digits[:, second + 1]
    micros = np.zeros(len(stamps), np.int64)
    for place in range(begin, min(end, begin + _MICRO_DIGITS)) if begin >= 0 else ():
        micros += digits[:, place] * 10 ** (_MICRO_DIGITS - 1 - (place - begin))
    return np.where(seconds < _MINUTE_S, seconds * 1_000_000 + micros, -1)


def _by_value(rows: Octets, read: Callable[[str], int]) -> Integers:
    """Return `read(text)` for each row, called once for each text."""
    changes = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    firsts = np.flatnonzero(changes)
    times: dict[bytes, int] = {}
    values = []
    for at in firsts.tolist():
        text = rows[at].tobytes()
        if text not in times:
            times[text] = read(text.decode())
        values.append(times[text])
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


def masked(data: bytes) -> bytes:
    """Return `data` with every digit a 0."""
    return data.translate(ALIKE)


__all__ = ["NO_TIME", "Flags", "StampReader", "masked", "octets_of", "to_datetime", "to_us"]


def wrapped_us(record: Record) -> int:
    """Return the time of a record's wrapper; MISDATED when its stamp is out of bounds, UNDATED when there is none."""
    if record.at is not None:
        return to_us(record.at)
    return MISDATED if record.misdated else UNDATED
