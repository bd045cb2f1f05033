"""What is known before any line is seen: what is looked for, and what the parser takes for a header."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.match import Matcher
from engine.match.digits import ALIKE
from engine.model.records import Labels, Record
from engine.model.rules import Format
from engine.parse.continuation import opens_document
from engine.parse.decoding import unescape
from engine.parse.headers import header_book
from engine.skim.alike import Alike, Known
from engine.skim.documents import Kinds
from engine.skim.layouts import Layout, example_of, layout_of
from engine.skim.lines import searched
from engine.skim.screen import Screen
from engine.skim.wrappings import BARE, Wrapping, goes_on, is_certain, wrapping_of

# the parser changes a text that holds one of these, so that more may match in it than in the bytes; looked for as signs are
CHANGED = (r"[\x00\x0b\x0c\r\x1b]", r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ", r"\*\*[^\s*/]", r"<span", r"</span>")
SOURCES = 1024  # that are remembered: little more is kept of each than its labels
LAYOUTS = 64  # of whose texts it is remembered what was learnt
WRAPPINGS = 256  # of which it is known how certain they are
REMEMBERED = 20_000  # lines whose verdict is kept
REMEMBERED_BYTES = 400  # of a line; longer ones are judged each time

_Line = str | tuple[bytes, bytes, bytes]  # with its wrappers off; in a wrapping


@dataclass
class Sight:
    """The screen of what is looked for, the formats, and what was learnt of them.

    The screen has to look for CHANGED too. One for a process: it only remembers.
    """

    screen: Screen
    matcher: Matcher
    formats: Sequence[Format]
    _alike: dict[object, Alike] = field(default_factory=dict)
    _known: dict[object, Known] = field(default_factory=dict)
    _layouts: dict[bytes, Layout | None] = field(default_factory=dict)  # by example
    _goes_on: dict[_Line, bool] = field(default_factory=dict)
    _kinds: Kinds | None = None
    _wrappings: dict[tuple[Wrapping, bytes], bool] = field(default_factory=dict)  # around lines in a layout

    def layout(self, line: bytes) -> Layout | None:
        """Return the layout of `line`, None when it is not certain."""
        example = example_of(line)
        if example is None:
            return None
        if example not in self._layouts:
            self._layouts[example] = layout_of(example, self.formats)
        return self._layouts[example]

    def alike(self, layout: Layout, source_id: str, labels: Labels) -> Alike:
        """Return what tells events of a source in one layout. What it learns serves others too, whose lines have labels of
        the same names, and the same values where any rule asks for these."""
        key = layout.example, source_id, tuple(labels.items())
        if key not in self._alike:
            if len(self._alike) >= SOURCES:
                self._alike.clear()
            if len(self._known) >= LAYOUTS:
                self._known.clear()
            asked = self.matcher.labels_asked({**labels, "source": source_id})
            # the parser takes no container off a line of one
            alike = layout.example, tuple(labels), labels.get("timezone"), asked, "#" in source_id
            known = self._known.setdefault(alike, Known())
            self._alike[key] = Alike(source_id, labels, layout, self.matcher, self.formats, known)
        return self._alike[key]

    @property
    def kinds(self) -> Kinds:
        """What is known of documents that programs write a line."""
        if self._kinds is None:
            self._kinds = Kinds(self.formats, self.stamped, self._is_wordy)
        return self._kinds

    def _is_wordy(self, record: Record) -> bool:
        text = searched(record).translate(ALIKE)
        return any(borne.named for _, borne in self.screen.bearing(text, [0]))

    def goes_on(self, line: bytes, wrapping: Wrapping | None = BARE) -> bool:
        """Tell whether a line is sure to be no more than the continuation of an event that began with a header.

        Args:
            wrapping: what stood around it; None when the parser took that off.
        """
        if wrapping is None:
            return self.is_headless(line.decode("utf-8", "replace"))
        key = wrapping.before, line, wrapping.behind
        known = self._goes_on.get(key)
        return self._remember(key, len(line), goes_on(wrapping, line, self.formats)) if known is None else known

    def wrapping(self, line: bytes) -> Wrapping | None:
        """Return what stands around `line`; None when that is nothing, or not sure to stand around others alike."""
        found = wrapping_of(line, self.formats)
        layout = self.layout(found[1]) if found is not None else None
        return found[0] if found is not None and layout is not None and self._takes_off(found[0], layout) else None

    def takes_off(self, wrappings: Iterable[Wrapping], layout: Layout) -> bool:
        """Tell whether lines of `layout` are sure to be the same with and without these wrappings."""
        return all(self._takes_off(wrapping, layout) for wrapping in wrappings)

    def _takes_off(self, wrapping: Wrapping, layout: Layout) -> bool:
        key = wrapping, layout.example
        if key not in self._wrappings:
            if len(self._wrappings) >= WRAPPINGS:
                self._wrappings.clear()
            self._wrappings[key] = is_certain(wrapping, layout, self.formats)
        return self._wrappings[key]

    def is_headless(self, text: str) -> bool:
        """Tell whether no event begins at `text`, from which all wrappers are off."""
        known = self._goes_on.get(text)
        return self._remember(text, len(text), header_book(self.formats).find(text) is None) if known is None else known

    def stamped(self, record: Record) -> datetime | None:
        """Return the time of the event that begins at `record` by its wrapper's word; None when its text may know better, or
        may be anything but the one event."""
        if not record.starts or record.partial or record.cut or opens_document(record.text):
            return None
        first = unescape(record.text).rstrip().partition("\n")[0]
        headless = self.is_headless(first) and (first == record.text or self.is_headless(record.text))
        return record.at if headless else None

    def _remember(self, key: _Line, size: int, verdict: bool) -> bool:
        if size <= REMEMBERED_BYTES and len(self._goes_on) < REMEMBERED:
            self._goes_on[key] = verdict
        return verdict


def sight_of(matcher: Matcher, formats: Sequence[Format], also: Iterable[str] = ()) -> Sight:
    """Return how to skim for what `matcher` looks for, and for lines that bear one of the expressions `also`."""
    return Sight(Screen(matcher, (*CHANGED, *also)), matcher, formats)
