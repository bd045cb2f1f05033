"""classes: the class of each event. A class is all events with the same layout whose texts are equal except for digits.

The table of classes, bounded in bytes, is kept from block to block, so that the text of a class is searched for signs once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from engine.columns.deciding import Decider, EventClass, Undecided
from engine.columns.events import Events
from engine.columns.layouts import NONE
from engine.columns.lines import MISDATED, UNDATED, Flags, Integers, index_of, numbers_of
from engine.columns.stamps import to_us
from engine.match import Matcher
from engine.match.checks import expression
from engine.match.digits import widened
from engine.model.records import Labels
from engine.model.rules import Format, Plan
from engine.parse.headers import header_book, level_of
from engine.quarantine import OF_THE_HOST

TABLE_BYTES = 64 << 20  # of texts in the table; a larger table is emptied
UNDECIDED = 0  # the class code of events that the reference reads
# the parser changes a text that holds one of these, so rules may match the changed text only
CHANGED = (r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ")
KEY_BYTES = 100  # memory of an entry besides its text
BAD_LEVELS = ("FATAL", "ERROR")  # of events that the observer is called with when no rule matches
# bad levels that no expression searches for
_TERSE_LEVELS = ("0", "1", "2", "3", "F", "E", "FATA", "FTL", "PANI", "PNC", "FAIL", "ERRO")

_DECIDED, _OUT_OF_COLUMNS, _OTHER_LAYOUT = 0, 1, 2  # numbers of reasons
_REASONS = ("", "a line or stamp that columns do not read", "equal texts in different layouts")

Codes = npt.NDArray[np.int32]


class Classed(Struct, frozen=True):
    """The class code of each event. The reference reads those that are `undecided`; `reasons` counts them by reason."""

    codes: Codes
    undecided: Flags
    reasons: Mapping[str, int]


class Classes:
    """The table of classes.

    Args:
        also: expressions; a class whose text one of them matches is decided although no rule needs it.

    Attributes:
        decided: the classes with a match, an open rule or a bad level, by code; None at the codes of all others.
        learnt: the number of texts that were added.
        with_results: the number of classes in `decided`.
    """

    def __init__(self, plan: Plan, matcher: Matcher, also: Iterable[str] = ()) -> None:
        self._book = header_book(plan.formats)
        self._decider, self._matcher = Decider(plan, matcher), matcher
        wide = [widened(regex) or "" for regex in (*CHANGED, *also)]  # searched in texts with 0 for every digit
        self._also = expression("(?m)" + "|".join(f"(?:{regex})" for regex in wide))
        self._terse = [_is_terse(layout) for layout in self._book.formats]
        self.learnt = self.with_results = 0
        self._reasons = list(_REASONS)
        self._clear()

    def of(self, events: Events) -> Classed:
        """Return the class of each event, and add new ones to the table."""
        if self._bytes > TABLE_BYTES:
            self._clear()
        rows, heads = events.rows, events.heads
        contexts = np.where(events.for_reference, -1, rows.label_codes[heads] * len(rows.field_sets) + rows.fields[heads])
        codes = np.full(len(events), UNDECIDED, np.int32)
        for number in np.unique(contexts[contexts >= 0]).tolist():
            labels, fields = divmod(number, len(rows.field_sets))
            table = self._tables.setdefault(self._context(rows.labels[labels], rows.field_sets[fields]), {})
            own = np.flatnonzero(contexts == number)
            codes[own] = self._of_context(events, own, table)
        return self._classed(events, codes)

    @property
    def table_bytes(self) -> int:
        """The approximate size of the table."""
        return self._bytes

    def _classed(self, events: Events, codes: Codes) -> Classed:
        """Return the class codes of events with the reasons why some are undecided."""
        reason_of = np.array(self._reason_of, np.int32)[codes]
        reason_of[(reason_of == _DECIDED) & (np.array(self._layout_of, np.int32)[codes] != events.layouts)] = _OTHER_LAYOUT
        reason_of[events.for_reference] = _OUT_OF_COLUMNS
        counts = np.bincount(reason_of, minlength=len(self._reasons)).tolist()
        reasons = {self._reasons[number]: count for number, count in enumerate(counts) if number and count}
        return Classed(codes, reason_of != _DECIDED, reasons)

    def _context(self, labels: Labels, fields: Labels) -> Hashable:
        """Return the class key besides text and layout: the labels and fields on which the parser and rules depend."""
        given = tuple(field for field in fields.items() if field[0] != "thread" or "thread" in self._matcher.tested_fields)
        return tuple(labels), self._matcher.labels_asked(labels), given

    def _clear(self) -> None:
        self._tables: dict[Hashable, dict[bytes, int]] = {}  # codes by text, by context
        self._bytes = 0
        self._quiet_of: dict[int, int] = {}  # the code of texts without results, by layout
        self._undecided_of: dict[int, int] = {}  # the code of texts that the reference reads, by reason
        self.decided: list[EventClass | None] = []
        self._layout_of: list[int] = []
        self._reason_of: list[int] = []  # by code, as a number in `_reasons`
        self._add(None, NONE, _OUT_OF_COLUMNS)

    def _of_context(self, events: Events, rows: Integers, table: dict[bytes, int]) -> Codes:
        """Return the class codes of events in one context; `table` gets those of new texts."""
        texts = events.alike if len(rows) == len(events) else events.alike.take(index_of(rows))
        encoded = texts.dictionary_encode()
        numbers = numbers_of(encoded.indices)
        keys: list[bytes] = encoded.dictionary.cast(pa.binary()).to_pylist()
        codes = [table.get(key, -1) for key in keys]
        new = [number for number, code in enumerate(codes) if code < 0]
        if new:
            firsts = np.full(len(keys), -1, np.int64)
            firsts[numbers[::-1]] = rows[::-1]
            for number, code in zip(new, self._learn([keys[n] for n in new], firsts[new], events), strict=True):
                codes[number] = table[keys[number]] = code
        return np.array(codes, np.int32)[numbers]

    def _learn(self, keys: Sequence[bytes], firsts: Integers, events: Events) -> Iterator[int]:
        """Yield the class code of each new text; `firsts` holds an event of each."""
        for key, event in zip(keys, firsts.tolist(), strict=True):
            self.learnt += 1
            self._bytes += len(key) + KEY_BYTES
            layout = int(events.layouts[event])
            if self._may_match(key) or (self._has_terse_levels(layout) and self._is_bad(events, event)):
                yield self._decide(events, event, layout)
            else:
                yield self._quiet(layout)

    def _may_match(self, key: bytes) -> bool:
        """Return whether a text may match a rule, be an error, or hold a document. All digits of `key` are 0."""
        return self._matcher.may_match(key) or self._also.search(key) is not None or key.lstrip().startswith(b"{")

    def _has_terse_levels(self, layout: int) -> bool:
        """Return whether events of a layout may have a level of _TERSE_LEVELS."""
        return layout >= len(self._terse) or self._terse[layout]

    def _is_bad(self, events: Events, event: int) -> bool:
        """Return whether the level of an event, read from its header or its document, is one of BAD_LEVELS."""
        row = int(events.heads[event])
        if events.rows.fields[row]:
            return level_of(events.rows.field_sets[int(events.rows.fields[row])].get("level", "")) in BAD_LEVELS
        header = self._book.read(events.rows.texts[row].as_py())
        return header is not None and header.level in BAD_LEVELS

    def _decide(self, events: Events, event: int, layout: int) -> int:
        """Let the reference decide the class of an event; return its code."""
        records = [events.rows.record(row) for row in range(int(events.heads[event]), int(events.ends[event]))]
        try:
            event_class, example = self._decider.decide(records)
        except OF_THE_HOST:
            raise
        except Undecided as undecided:
            return self._left_to_reference(str(undecided))
        except Exception:  # the reference puts each event into quarantine
            return self._left_to_reference("a stage raises")
        undated = MISDATED if example.misdated else UNDATED
        at_us = undated if example.timestamp is None else to_us(example.timestamp)
        if at_us != int(events.at_us[event]):
            return self._left_to_reference("a time that columns read otherwise")
        if event_class.may_match or event_class.level in BAD_LEVELS:
            self.with_results += 1
            return self._add(event_class, layout)
        return self._quiet(layout)

    def _quiet(self, layout: int) -> int:
        """Return the code of all texts of a layout that have no results."""
        if layout not in self._quiet_of:
            self._quiet_of[layout] = self._add(None, layout)
        return self._quiet_of[layout]

    def _left_to_reference(self, reason: str) -> int:
        """Return the code of all texts that the reference reads for one reason."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        number = self._reasons.index(reason)
        if number not in self._undecided_of:
            self._undecided_of[number] = self._add(None, NONE, number)
        return self._undecided_of[number]

    def _add(self, event_class: EventClass | None, layout: int, reason: int = _DECIDED) -> int:
        self.decided.append(event_class)
        self._layout_of.append(layout)
        self._reason_of.append(reason)
        return len(self.decided) - 1


def _is_terse(layout: Format) -> bool:
    """Return whether a layout prints no level, or may print one of _TERSE_LEVELS."""
    level = re.search(r"\(\?P<level>((?:[^()]|\([^()]*\))*)\)", layout.header)
    return level is None or any(expression(f"(?:{level[1]})").fullmatch(word) for word in _TERSE_LEVELS)
