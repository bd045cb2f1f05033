"""Layouts: headers so plain that all lines of a text are compared with one at once, and their times read side by side.

A layout is a stamp with what stands around it, as in `[2026-11-21 10:00:00,123] ` or `2026-11-21T10:00:00.123Z `. Whether a
line in it begins an event, whatever follows, is asked of the parser, with endings that try to look like something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache

import numpy as np
from msgspec import Struct

from engine.model.records import RawLine
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.headers import header_book
from engine.parse.times import parse_stamp
from engine.skim.lines import Bytes, Flags, Lines, Numbers

DAY_MS = 86_400_000
NO_TIME = -(2**63)  # in microseconds
_DAY_1970 = date(1970, 1, 1).toordinal()
_CLOCK_END = 19  # length of 2022-10-05 17:05:39
_FRACTION = re.compile(rb"[.,](0{1,9})")
_HEAD = re.compile(
    rb"(?P<open>\[?)(?P<date>20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?P<fraction>[.,]\d{3})?)"
    rb"(?P<zone>Z|[+-]\d\d:?\d\d)?(?P<close>\]?) "
)
ANY_TIME = bytes.maketrans(b"0123456789", b"1111111111")  # 2011-11-11 11:11:11,111
# what a line may go on with: it has to be the header of an event all the same
ENDINGS = (
    *("", " ", "\tat a", "  at a", "\t"),
    *r"""INFO x
ERROR [a] b.C - x
1
,x
| x
a  | x
Z x
E x
[E] x
|E| x
F x
3 x
<3> x
err x
[main] E x
[a|b] x
[main] x
{
stdout F x
stderr P x
Caused by: x
a.b.CException: x
a exited with code 1
x (a.b.C:1)
%3|1593460123.747|FAIL|a| x
Topic: a Partition: 0 Leader: 1""".splitlines(),
)
CONTINUATIONS = ("\tat ", "\t... ", "Caused by: ")
# endings with which some layouts are something else, and what every such line bears: then a line that bears it is doubtful
_DOUBTS = (
    (("host-1 kafka[4711]: x",), r"\[[0-9]{1,10}\]:"),
    (("host-1 kernel: x", "host-1 systemd: x"), r" (?:kernel|systemd):"),
    (("2022-10-05 10:00:00,000 x", "[2022-10-05 10:00:00,000] x"), r"[ \t]\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]"),
    (('{app="kafka"} x', '{app="kafka"} [2022-10-05 10:00:00,000] x'), r"\{[a-z_]"),
    (('"x"', '{"message":"x"}', 'x,"y"'), r'"'),
)
DOUBTFUL_ENDINGS = tuple(ending for endings, _ in _DOUBTS for ending in endings)


class Layout(Struct, frozen=True):
    """How the headers of a log begin: `example` is the beginning of one, up to the blank behind its stamp.

    `opened` bytes stand before the stamp, which is `width` bytes long and has a fraction of a second if `fraction`; `zoned`: it
    names its offset, which is part of the layout. A line in which the expression `doubt` matches, if
    there is one, may be something else.
    """

    example: bytes
    opened: int
    width: int
    fraction: bool
    zoned: bool
    doubt: str

    def fits(self, rows: Bytes) -> Flags:
        """Return which of the lines that begin as `rows` are in this layout, and have a time of day that there is."""
        right = np.ones(len(rows), np.bool_)
        for at, same, digits, mask in _tests(self.example, self._digits()):
            differs = _word(rows, at) ^ same
            right &= ((differs | (differs + digits)) & mask) == 0
        if not self.opened and not self.zoned:  # an offset may stand behind the blank
            following = rows[:, len(self.example)]
            right &= (following != ord("+")) & (following != ord("-"))
        hours, minutes, seconds = _clock(rows, self.opened)
        return right & (hours < 24) & (minutes < 60) & (seconds < 60)

    def times(self, rows: Bytes) -> Numbers:
        """Return the milliseconds from the year 1 to each stamp as printed, -1 for a day that there is not; all must fit."""
        hours, minutes, seconds = _clock(rows, self.opened)
        clock = ((hours * 60 + minutes) * 60 + seconds) * 1000
        if self.fraction:
            digits = rows[:, self.opened + 20 : self.opened + 23].astype(np.int64) - ord("0")
            clock += digits[:, 0] * 100 + digits[:, 1] * 10 + digits[:, 2]
        days = _days(rows, self.opened)
        return np.where(days < 0, -1, days * DAY_MS + clock)

    def time(self, row: Bytes, zone: tzinfo) -> datetime | None:
        """Return the time of the line that begins as `row`, as the parser reads it."""
        return self.time_in(bytes(row).decode("latin-1"), zone)

    def time_in(self, line: str, zone: tzinfo) -> datetime | None:
        """Return the time of `line`, which fits, as the parser reads it."""
        stamp = line[self.opened : self.opened + self.width]
        if zone is not UTC or self.zoned:
            return parse_stamp(stamp, "iso", zone)
        try:
            return datetime.fromisoformat(f"{stamp}+00:00")
        except ValueError:
            return None

    def _digits(self) -> tuple[int, ...]:
        """Return where any digit may stand: in the stamp without its century and its offset."""
        stamp = range(self.opened + 2, self.opened + (23 if self.fraction else 19))
        return tuple(at for at in stamp if self.example[at : at + 1].isdigit())


def example_of(line: bytes) -> bytes | None:
    """Return the beginning of `line` up to the blank behind its stamp, with one time for all; None without a stamp."""
    head = _HEAD.match(line)
    if head is None or bool(head["open"]) != bool(head["close"]):
        return None
    date_ = head["date"][:2] + head["date"][2:].translate(ANY_TIME)
    return head["open"] + date_ + line[head.end("date") : head.end()]


def layout_of(example: bytes, formats: Sequence[Format]) -> Layout | None:
    """Return the layout that begins as `example` (see example_of) if each line in it is sure to begin an event so stamped."""
    head = _HEAD.match(example)
    if head is None or not _certain(head, ENDINGS, formats):
        return None
    stamp = len(head["date"]) + len(head["zone"] or b"")
    doubts = [sign for endings, sign in _DOUBTS if not _certain(head, endings, formats)]
    return Layout(example, len(head["open"]), stamp, head["fraction"] is not None, head["zone"] is not None, "|".join(doubts))


def stamped_us(lines: Lines, places: Numbers, shape: bytes) -> Numbers:
    """Return the time of stamps, of which one begins at each of some places, as `to_us` does; NO_TIME for what is none.

    All look as `shape`, a stamp whose digits are zeros (`0000-00-00T00:00:00.000Z`): one without an offset is taken for UTC.
    """
    rows = lines.windows(places, max(len(shape), _CLOCK_END))
    hours, minutes, seconds = _clock(rows, 0)
    days = _days(rows, 0)
    there = (days >= 0) & (hours < 24) & (minutes < 60) & (seconds < 60)
    clock = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    fraction = _FRACTION.match(shape, _CLOCK_END)
    width = 0 if fraction is None else len(fraction[1])
    for at in range(min(width, 6)):
        clock += (rows[:, _CLOCK_END + 1 + at].astype(np.int64) - ord("0")) * 10 ** (5 - at)
    offset = shape[_CLOCK_END + (width and width + 1) :]
    if offset[:1] in (b"+", b"-"):
        hour, minute = (_two_digits(rows, at) for at in (len(shape) - len(offset) + 1, len(shape) - 2))
        clock += (hour * 60 + minute) * (60_000_000 if offset[:1] == b"-" else -60_000_000)
    return np.where(there, (days - _DAY_1970) * DAY_MS * 1000 + clock, NO_TIME)


def to_us(at: datetime | None) -> int:
    """Return a time in microseconds since 1970, NO_TIME for none."""
    return NO_TIME if at is None else round(at.timestamp() * 1_000_000)


def surely_continues(rows: Bytes) -> Flags:
    """Return which of the lines that begin as `rows` begin as no header and no wrapper does: pieces of a stack trace."""
    sure = np.zeros(len(rows), np.bool_)
    for beginning in CONTINUATIONS:
        sure |= (rows[:, : len(beginning)] == np.frombuffer(beginning.encode(), np.uint8)).all(1)
    return sure


def _certain(head: re.Match[bytes], endings: Sequence[str], formats: Sequence[Format]) -> bool:
    example, stamp = head[0].decode(), (head["date"] + (head["zone"] or b"")).decode()
    return all(_begins_event(example + ending, stamp, formats) for ending in endings)


def _begins_event(line: str, stamp: str, formats: Sequence[Format]) -> bool:
    """Tell whether the parser takes `line` as it stands for the header of an event that is stamped `stamp`, and no more."""
    record = unwrap_line(RawLine("", 0, line.encode(), 0), formats)
    header = header_book(formats).read(line)
    if record.text != line or record.source_id or record.partial or header is None:
        return False
    takers = {name for format_ in formats for name in format_.carries}
    plain = not header.format.carries and header.format.name not in takers
    worded = header.level not in ("ERROR", "FATAL") or header.level in line  # no letter or number stands for an error
    return plain and worded and header.time == stamp and header.format.time == "iso"


def _word(rows: Bytes, at: int) -> NDArrayU64:
    """Return bytes `at` to `at + 8` of each row as one number."""
    return rows[:, at : at + 8].view("<u8")[:, 0]


NDArrayU64 = np.ndarray[tuple[int], np.dtype[np.uint64]]


@lru_cache(maxsize=64)
def _tests(example: bytes, digits: tuple[int, ...]) -> tuple[tuple[int, np.uint64, np.uint64, np.uint64], ...]:
    """Return how to compare lines with `example` eight bytes at a time: where; what to find; what makes more than a digit of
    what differs from one by 10 or more; which bits must be zero then."""
    made = []
    wanted = bytes(ord("0") if at in digits else char for at, char in enumerate(example))
    for start in (*range(0, len(example) - 8, 8), len(example) - 8):
        span = range(start, start + 8)
        more = bytes(6 if at in digits else 0 for at in span)
        mask = bytes(0xF0 if at in digits else 0xFF for at in span)
        made.append((start, *(np.uint64(int.from_bytes(each, "little")) for each in (wanted[start : start + 8], more, mask))))
    return tuple(made)


def _two_digits(rows: Bytes, at: int) -> Numbers:
    digits = rows[:, at : at + 2].astype(np.int64) - ord("0")
    return digits[:, 0] * 10 + digits[:, 1]


def _clock(rows: Bytes, opened: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return hours, minutes and seconds of stamps: two digits of each word `10:00:00` make one byte, all at once."""
    digits = _word(rows, opened + 11) - np.uint64(int.from_bytes(b"00:00:00", "little"))
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    hours, minutes, seconds = ((pairs >> np.uint64(shift)) & np.uint64(0xFF) for shift in (0, 24, 48))
    return hours.astype(np.int64), minutes.astype(np.int64), seconds.astype(np.int64)


def _days(rows: Bytes, opened: int) -> Numbers:
    """Return the day of each stamp, -1 for one that there is not; days change seldom from line to line."""
    some, rest = _word(rows, opened), _word(rows, opened + 2)
    changes = np.flatnonzero((some[1:] != some[:-1]) | (rest[1:] != rest[:-1])) + 1
    firsts = np.concatenate((np.zeros(1, np.int64), changes))
    days = [_day(bytes(rows[at, opened : opened + 10])) for at in firsts.tolist()]
    return np.repeat(np.array(days, np.int64), np.diff(np.append(firsts, len(rows))))


@lru_cache(maxsize=1024)
def _day(text: bytes) -> int:
    try:
        return date.fromisoformat(text.decode("ascii")).toordinal()
    except ValueError:
        return -1
