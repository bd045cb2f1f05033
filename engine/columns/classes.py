"""classes: of every event which class it is in, all events whose texts are equal but for their digits being one.

The one memory of the fast way: whatever the mixture of layouts, a text that was seen is not looked at again. Bounded in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from engine.columns.deciding import Decider, EventClass
from engine.columns.layouts import Layouts
from engine.columns.lines import Flags, Integers
from engine.match import Matcher
from engine.match.screen import Screen
from engine.model.records import LogEvent, Record
from engine.quarantine import OF_THE_HOST

KNOWN_BYTES = 64 << 20  # of texts that are remembered
QUIET, UNDECIDED = 0, 1  # bears nothing; the reference reads each event
# the parser changes a text that holds one of these, so that more may match in it than in its bytes
CHANGED = (r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ")
_LEVELS = ("FATAL", "ERROR")

Codes = npt.NDArray[np.int32]


class Classed(Struct, frozen=True):
    """The class of each event. `doubted`: those that are in another layout than the first event of their class was."""

    codes: Codes
    doubted: Flags


class Classes:
    """The classes met so far. `decided` are those that bear something, by their code.

    Args:
        telling: the layouts whose events may differ from others alike in more than digits (see Recogniser).
        also: expressions for texts that have to be decided although no rule asks for them.
    """

    def __init__(self, decider: Decider, matcher: Matcher, also: Iterable[str] = ()) -> None:
        self._decider = decider
        self._screen: Screen = matcher.screen((*CHANGED, *also))
        self._codes: dict[bytes, int] = {}
        self._bytes = 0
        self.decided: list[EventClass | None] = [None, None]
        self._layout_of: list[int] = [-1, -1]
        self._quiet_of: dict[int, int] = {}  # by layout

    def of(
        self, texts: pa.StringArray, layouts: Layouts, records: Callable[[int], Sequence[Record]], times: Integers
    ) -> Classed:
        """Return the classes of events.

        Args:
            texts: the lines of each, with their ends and every digit a 0.
            layouts: the layout of the first line of each.
            records: returns the records of an event.
            times: when they were, as columns have it.
        """
        encoded = texts.dictionary_encode()
        numbers = encoded.indices.to_numpy()
        keys: list[bytes] = encoded.dictionary.cast(pa.binary()).to_pylist()
        if self._bytes > KNOWN_BYTES:
            self._codes, self._bytes = {}, 0
            self._quiet_of = {}
            self.decided, self._layout_of = [None, None], [-1, -1]
        codes = [self._codes.get(key, -1) for key in keys]
        fresh = [number for number, code in enumerate(codes) if code < 0]
        if fresh:
            firsts = np.full(len(keys), -1, np.int64)
            firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]
            self._learn(keys, fresh, firsts, layouts, records, times)
            for number in fresh:
                codes[number] = self._codes[keys[number]]
        per_key = np.array(codes, np.int32)
        known_layouts = np.array(self._layout_of, np.int32)[per_key]
        row_codes = per_key[numbers]
        doubted = known_layouts[numbers] != layouts
        return Classed(row_codes, doubted & (row_codes != UNDECIDED))

    def status(self, code: int) -> EventClass | None:
        """Return what was decided of a class; None where it bears nothing or is not decided."""
        return self.decided[code]

    def _learn(
        self,
        keys: Sequence[bytes],
        fresh: Sequence[int],
        firsts: Integers,
        layouts: Layouts,
        records: Callable[[int], Sequence[Record]],
        times: Integers,
    ) -> None:
        bearing = self._bearing([keys[number] for number in fresh])
        for at, number in enumerate(fresh):
            key, row = keys[number], int(firsts[number])
            layout = int(layouts[row])
            self._bytes += len(key) + 100
            self._codes[key] = (
                self._decide(records(row), layout, int(times[row])) if at in bearing else self._quiet(layout)
            )

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

    def _decide(self, records: Sequence[Record], layout: int, at_us: int) -> int:
        try:
            decided = self._decider.decide(records)
        except OF_THE_HOST:
            raise
        except Exception:  # the reference will say of each event what is wrong with it
            return UNDECIDED
        if decided is None:
            return UNDECIDED
        made, event = decided
        if not _is_dated_alike(event, made, at_us):
            return UNDECIDED
        if not made.bears and made.level not in _LEVELS:
            return self._quiet(layout)
        return self._add(made, layout)

    def _add(self, decided: EventClass | None, layout: int) -> int:
        self.decided.append(decided)
        self._layout_of.append(layout)
        return len(self.decided) - 1


def _is_dated_alike(event: LogEvent, decided: EventClass, at_us: int) -> bool:
    from engine.columns.stamps import NO_TIME, to_us  # noqa: PLC0415

    if event.timestamp is None or not decided.dated:
        return not decided.dated
    return at_us in (NO_TIME, to_us(event.timestamp))


_ = re
