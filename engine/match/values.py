"""Converts captured text to typed values: int, bytes and ms to whole numbers, num to a float; other types stay text.

A topic-partition becomes `<topic>-<partition>`, whatever its spelling in the log.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from engine.model.matches import Value

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([kmgt]?)i?b?(?:ytes)?", re.IGNORECASE)
_TOPIC_PARTITION = re.compile(r"([A-Za-z0-9._-]+)(?:-|, ?|'?, partition ?= ?)([0-9]+)")
_MAX_DIGITS = 19


def typed(text: str, type_: str) -> Value:
    """Return `text` as a value of the hole type `type_`; the text itself when it cannot be converted."""
    convert = _CONVERT.get(type_)
    if convert is None:
        return text
    try:
        return convert(text)
    except ValueError:
        return text


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS + 1:
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999: JSON cannot represent infinity
        raise ValueError(text)
    return number


def _size(text: str) -> int:
    """Return a size ("1048576", "1 MB", "2GiB") in bytes; units are powers of 1024, as in Kafka."""
    parts = _SIZE.fullmatch(text.strip())
    if parts is None:
        raise ValueError(text)
    unit: int = 1024 ** _UNITS[parts[2].lower()]
    return int(parts[1]) * unit if "." not in parts[1] else round(float(parts[1]) * unit)


def _topic_partition(text: str) -> str:
    parts = _TOPIC_PARTITION.fullmatch(text)
    return f"{parts[1]}-{parts[2]}" if parts else text


_CONVERT: Mapping[str, Callable[[str], Value]] = {
    "int": _whole,
    "ms": _whole,
    "num": _number,
    "bytes": _size,
    "tp": _topic_partition,
}
