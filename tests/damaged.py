"""Damaged lines with stamps of any kind, for runs that must not end for them."""

from __future__ import annotations

import re
from random import Random

from tests.unit.parse.test_fuzz import LINES, mutated

YEARS = ("0001", "0000", "1969", "1989", "1990", "2022", "2026", "2038", "2100", "2101", "9999", "12026")
_DATE = re.compile(rb"(?:19|20)\d\d(?=-\d\d-\d\d)")
_DAY = re.compile(rb"(?<=\d\d\d\d-)\d\d-\d\d")
DAYS = ("01-01", "12-31", "02-29", "02-30", "00-00", "10-05")


def damaged(random: Random) -> bytes:
    """Return a line of a kind that is known, damaged or not."""
    return mutated(random.choice(LINES), random).replace(b"\n", b" ")


def stamped(line: bytes, random: Random) -> bytes:
    """Return `line` with its dates, if it has any, of any year and day."""
    if random.random() < 0.5:
        line = _DATE.sub(lambda _: random.choice(YEARS).encode(), line)
    return _DAY.sub(lambda _: random.choice(DAYS).encode(), line) if random.random() < 0.3 else line
