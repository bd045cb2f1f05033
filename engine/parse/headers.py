"""Which layout a line is in, and what its header says. Linear time on any text: RE2 only.

One set of all formats answers in a single pass over the line, whatever their number; only the format it names is run again for
its groups. So what a line is depends on the line alone, never on the lines before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import re2
from msgspec import Struct, field

from engine.identity_cache import remembered
from engine.model.rules import Format

GENERIC_RANK = 90  # formats from here on take any line with a stamp: they do not vouch that it bears no wrapper
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
    """What the header of a line says. Every field is empty when it does not say; `time` is the stamp as printed."""

    format: Format
    time: str
    level: str
    logger: str
    thread: str
    message: str
    labels: Mapping[str, str] = field(default_factory=dict)


class HeaderBook:
    """The compiled formats of a plan; build it through `header_book`, which keeps it."""

    def __init__(self, formats: Sequence[Format]) -> None:
        self.formats = tuple(sorted(formats, key=lambda f: (f.rank, f.name)))
        self._readers = [re2.compile(f.header) for f in self.formats]
        self._groups = [tuple(reader.groupindex.items()) for reader in self._readers]
        self._set = re2.Set.MatchSet(_quiet())
        for format_ in self.formats:
            self._set.Add(format_.header)
        if self.formats:
            self._set.Compile()

    def find(self, line: str) -> Format | None:
        """Return the format with the lowest rank whose header `line` begins with; None when no event begins here."""
        index = self._find(line)
        return None if index is None else self.formats[index]

    def knows(self, line: str) -> bool:
        """Tell whether `line` as it stands is in a layout of its own, so that nothing wraps it."""
        found = self.find(line)
        return found is not None and found.rank < GENERIC_RANK

    def read(self, line: str) -> Header | None:
        """Return what the header of `line` says; None when it has none."""
        index = self._find(line)
        if index is None:
            return None
        subject = line.encode() if line.isascii() else line  # where they agree, bytes spare RE2 the counting of characters
        match = self._readers[index].match(subject)
        return None if match is None else self._header(index, line, match.span)

    def _find(self, line: str) -> int | None:
        found = self._set.Match(line) if self.formats else None
        return min(found) if found else None

    def _header(self, index: int, line: str, span: Callable[[int], tuple[int, int]]) -> Header:
        """Return what the groups at `span` say; a group that took no part is at (-1, -1)."""
        format_ = self.formats[index]
        known, labels = dict.fromkeys(_FIELDS, ""), dict(format_.labels)
        for name, number in self._groups[index]:
            start, end = span(number)
            if start < end:
                (known if name in known else labels)[name] = line[start:end]
        known["message"] = known["message"] or line.strip()
        known["level"] = level_of(known["level"] or format_.level)
        return Header(format_, **known, labels=labels)


def level_of(word: str) -> str:
    """Return a level under the one name that log4j gives it (WARNING, 4 and W are all WARN); other words in upper case."""
    word = word.strip().upper()
    return _LEVELS.get(word, word)


@remembered
def header_book(formats: Sequence[Format]) -> HeaderBook:
    """Return the compiled `formats`, the same book for the same tuple. Raises re2.error for a header that is no RE2 syntax."""
    return HeaderBook(formats)


def _quiet() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20  # the states of all formats together; RE2 starts over, more slowly, when they outgrow it
    return options
