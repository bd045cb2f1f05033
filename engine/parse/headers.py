"""Finds the format of a line and reads the fields of its header. Linear time on any text: RE2 only.

All formats are compiled into one RE2 set, which is matched in a single pass over the line, whatever their number. Only the
format that fits is matched again, for its groups. So the format depends on the line alone, never on the lines before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import re2
from msgspec import Struct, field

from engine.identity_cache import cached_by_identity
from engine.model.rules import Format

GENERIC_RANK = 90  # formats of this rank or higher fit any line with a stamp, so they do not rule out a wrapper around it
_FIELDS = ("time", "level", "logger", "thread", "message")
_LEVELS = {
    **dict.fromkeys(
        ("0", "1", "2", "F", "FATA", "PANI", "CRIT", "CRITICAL", "EMERG", "EMERGENCY", "ALERT", "SEVERE", "FTL", "PNC"), "FATAL"
    ),
    **dict.fromkeys(("3", "E", "ERR", "ERRO", "FAIL"), "ERROR"),
    **dict.fromkeys(("4", "W", "WARNING", "WRN"), "WARN"),
    **dict.fromkeys(("5", "6", "I", "NOTICE", "INFORMATION", "LOG", "A", "AUDIT", "INF", "CONFIG"), "INFO"),
    **dict.fromkeys(("7", "D", "DBUG", "DEBU", "VERBOSE", "DBG", "FINE"), "DEBUG"),
    **dict.fromkeys(("T", "TRCE", "TRAC", "TRC", "VRB", "FINER", "FINEST"), "TRACE"),
}


class Header(Struct, frozen=True):
    """The fields of a line's header, empty where it has none. `time` is the stamp as printed, `level` is as of `level_of`."""

    format: Format
    time: str
    level: str
    logger: str
    thread: str
    message: str
    labels: Mapping[str, str] = field(default_factory=dict)


class HeaderBook:
    """The compiled formats of a plan. Build it with `header_book`, which caches it."""

    def __init__(self, formats: Sequence[Format]) -> None:
        self.formats = tuple(sorted(formats, key=lambda f: (f.rank, f.name)))
        self._readers = [re2.compile(f.header) for f in self.formats]
        self._groups = [tuple(reader.groupindex.items()) for reader in self._readers]
        self._set = re2.Set.MatchSet(_set_options())
        for format_ in self.formats:
            self._set.Add(format_.header)
        if self.formats:
            self._set.Compile()

    def find(self, line: str) -> Format | None:
        """Return the format of the lowest rank whose header `line` begins with; None when no event begins here."""
        index = self._find(line)
        return None if index is None else self.formats[index]

    def knows(self, line: str) -> bool:
        """Return whether `line` has a header of a specific format, so that there is no wrapper around it."""
        format_ = self.find(line)
        return format_ is not None and format_.rank < GENERIC_RANK

    def read(self, line: str) -> Header | None:
        """Return the header of `line`; None when it has none."""
        index = self._find(line)
        if index is None:
            return None
        subject = line.encode() if line.isascii() else line  # in ASCII the offsets agree, and bytes save RE2 mapping them
        match = self._readers[index].match(subject)
        return None if match is None else self._header(index, line, match.span)

    def _find(self, line: str) -> int | None:
        indexes = self._set.Match(line) if self.formats else None
        return min(indexes) if indexes else None

    def _header(self, index: int, line: str, span: Callable[[int], tuple[int, int]]) -> Header:
        """Return the header of `line` in the format at `index`. `span` returns the start and end of a group, (-1, -1) for one
        that took no part in the match."""
        format_ = self.formats[index]
        fields, labels = dict.fromkeys(_FIELDS, ""), dict(format_.labels)
        for name, number in self._groups[index]:
            start, end = span(number)
            if start < end:
                (fields if name in fields else labels)[name] = line[start:end]
        fields["message"] = fields["message"] or line.strip()
        fields["level"] = level_of(fields["level"] or format_.level)
        return Header(format_, **fields, labels=labels)


def level_of(word: str) -> str:
    """Return the name that log4j has for a level (WARNING, 4 and W are all WARN); a word that is no level in upper case."""
    word = word.strip().upper()
    return _LEVELS.get(word, word)


@cached_by_identity
def header_book(formats: Sequence[Format]) -> HeaderBook:
    """Return the compiled `formats`; the same book for the same object. Raises re2.error when a header is not RE2 syntax."""
    return HeaderBook(formats)


def _set_options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20  # bytes for the DFA of all formats; when it grows beyond that, RE2 rebuilds it, which is slower
    return options
