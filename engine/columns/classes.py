"""classes: of every event which class it is in, all events whose texts are equal but for their digits being one.

The one memory of the fast way: whatever the mixture of layouts, a text that was seen is not looked at again. Bounded in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from engine.columns.deciding import Decider, EventClass
from engine.columns.events import UNDATED, Events
from engine.columns.layouts import NONE
from engine.columns.lines import Flags, Integers, index_of, numbers_of
from engine.columns.stamps import to_us
from engine.match import Matcher
from engine.match.checks import expression
from engine.match.screen import Screen
from engine.model.records import Labels, LogEvent
from engine.model.rules import Format, Plan
from engine.parse.headers import header_book, level_of
from engine.quarantine import OF_THE_HOST

KNOWN_BYTES = 64 << 20  # of texts that are remembered
QUIET, UNDECIDED = 0, 1  # bears nothing; the reference reads each event
# the parser changes a text that holds one of these, so that more may match in it than in its bytes
CHANGED = (r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ")
KEY_BYTES = 100  # that a text takes besides itself
BAD_LEVELS = ("FATAL", "ERROR")  # of which the observer is told though no rule matches
_SHORT = ("0", "1", "2", "3", "F", "E", "FATA", "FTL", "PANI", "PNC", "FAIL", "ERRO")  # levels that no sign is found in

Codes = npt.NDArray[np.int32]


class Classed(Struct, frozen=True):
    """The class of each event. `doubted`: those that are in another layout than the first event of their class was."""

    codes: Codes
    doubted: Flags


class Classes:
    """The classes met so far. `decided` are those that bear something, by their code.

    Args:
        also: expressions for texts that have to be decided although no rule asks for them.
    """

    def __init__(self, plan: Plan, matcher: Matcher, also: Iterable[str] = ()) -> None:
        self._book = header_book(plan.formats)
        self._decider, self._matcher = Decider(plan, matcher), matcher
        self._screen: Screen = matcher.screen((*CHANGED, *also))
        self._terse = [_is_terse(each) for each in self._book.formats]
        self._forget()

    def of(self, events: Events) -> Classed:
        """Return the classes of events; of those that the reference is asked of it is UNDECIDED."""
        if self._bytes > KNOWN_BYTES:
            self._forget()
        rows, heads = events.rows, events.heads
        kinds = rows.labelled[heads] * len(rows.field_sets) + rows.fields[heads]
        codes = np.full(len(events), UNDECIDED, np.int32)
        doubted = np.zeros(len(events), np.bool_)
        kinds = np.where(events.asked, -1, kinds)
        present = np.unique(kinds[kinds >= 0]).tolist()
        for kind in present:
            context = self._context(rows.labels[kind // len(rows.field_sets)], rows.field_sets[kind % len(rows.field_sets)])
            some = np.flatnonzero(kinds == kind)
            codes[some], doubted[some] = self._of_context(events, some, self._known.setdefault(context, {}))
        return Classed(codes, doubted)

    def _context(self, labels: Labels, fields: Labels) -> Hashable:
        """Return what matters to the parser and to rules besides the text: of labels and of what the wrapper says."""
        said = tuple(each for each in fields.items() if each[0] != "thread" or "thread" in self._matcher._tested)
        return tuple(labels), self._matcher.labels_asked(labels), said

    def _forget(self) -> None:
        self._known: dict[Hashable, dict[bytes, int]] = {}
        self._bytes = 0
        self._quiet_of: dict[int, int] = {}  # by layout
        self.decided: list[EventClass | None] = [None, None]
        self._layout_of = [NONE, NONE]

    def _of_context(self, events: Events, some: Integers, known: dict[bytes, int]) -> tuple[Codes, Flags]:
        texts = events.alike if len(some) == len(events) else events.alike.take(index_of(some))
        encoded = texts.dictionary_encode()
        numbers = numbers_of(encoded.indices)
        keys: list[bytes] = encoded.dictionary.cast(pa.binary()).to_pylist()
        codes = [known.get(key, -1) for key in keys]
        fresh = [number for number, code in enumerate(codes) if code < 0]
        if fresh:
            firsts = np.full(len(keys), -1, np.int64)
            firsts[numbers[::-1]] = some[::-1]
            for number, code in zip(fresh, self._learn([keys[n] for n in fresh], firsts[fresh], events), strict=True):
                codes[number] = known[keys[number]] = code
        per_key = np.array(codes, np.int32)
        layouts = np.array(self._layout_of, np.int32)[per_key]
        found = per_key[numbers]
        return found, (layouts[numbers] != events.layouts[some]) & (found != UNDECIDED)

    def _learn(self, keys: Sequence[bytes], firsts: Integers, events: Events) -> Iterator[int]:
        """Yield the class of each of some texts, of which `firsts` are events."""
        bearing = self._bearing(keys)
        for at, (key, event) in enumerate(zip(keys, firsts.tolist(), strict=True)):
            self._bytes += len(key) + KEY_BYTES
            layout = int(events.layouts[event])
            if at in bearing or ((layout >= len(self._terse) or self._terse[layout]) and self._is_bad(events, event)):
                yield self._decide(events, event, layout)
            else:
                yield self._quiet(layout)

    def _is_bad(self, events: Events, event: int) -> bool:
        """Tell whether an event in a layout whose levels are short is of a level that is told of without a rule."""
        row = int(events.heads[event])
        if events.rows.fields[row]:
            return level_of(events.rows.field_sets[int(events.rows.fields[row])].get("level", "")) in BAD_LEVELS
        header = self._book.read(events.rows.texts[row].as_py())
        return header is not None and header.level in BAD_LEVELS

    def _bearing(self, keys: Sequence[bytes]) -> set[int]:
        """Return which of some texts may bear something, by position."""
        if not self._screen.complete:
            return set(range(len(keys)))
        text = b"".join(keys)
        if not text.isascii():
            ascii_keys = [key.decode().encode("ascii", "replace") for key in keys]
            keys, text = ascii_keys, b"".join(ascii_keys)
        begins = np.cumsum([0, *map(len, keys)])[:-1].tolist()
        found = set(self._screen._borne(text, begins))
        return found | {at for at, key in enumerate(keys) if key.lstrip().startswith(b"{")}

    def _quiet(self, layout: int) -> int:
        if layout not in self._quiet_of:
            self._quiet_of[layout] = self._add(None, layout)
        return self._quiet_of[layout]

    def _decide(self, events: Events, event: int, layout: int) -> int:
        records = [events.rows.record(row) for row in range(int(events.heads[event]), int(events.ends[event]))]
        try:
            decided = self._decider.decide(records)
        except OF_THE_HOST:
            raise
        except Exception:  # the reference says of each event what is wrong with it
            return UNDECIDED
        if decided is None or not _is_dated_alike(decided[1], int(events.at_us[event])):
            return UNDECIDED
        made, _ = decided
        return self._add(made, layout) if made.bears or made.level in BAD_LEVELS else self._quiet(layout)

    def _add(self, decided: EventClass | None, layout: int) -> int:
        self.decided.append(decided)
        self._layout_of.append(layout)
        return len(self.decided) - 1


def _is_dated_alike(event: LogEvent, at_us: int) -> bool:
    return at_us == (UNDATED if event.timestamp is None else to_us(event.timestamp))


def _is_terse(layout: Format) -> bool:
    """Tell whether a bad level may stand in a layout in a word without a sign, or in none."""
    level = re.search(r"\(\?P<level>((?:[^()]|\([^()]*\))*)\)", layout.header)
    return level is None or any(expression(f"(?:{level[1]})").fullmatch(word) for word in _SHORT)
