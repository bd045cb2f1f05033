"""What is known before any line is seen: what is looked for, and what the parser takes for a header."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.match import Matcher
from engine.match.screen import Screen
from engine.model.records import Labels, RawLine, Record
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.continuation import opens_document
from engine.parse.decoding import unescape
from engine.parse.headers import header_book
from engine.skim.alike import Alike
from engine.skim.layouts import Layout, example_of, layout_of

# the parser changes a text that holds one of these, so that more may match in it than in the bytes; looked for as signs are
CHANGED = (r"[\x00\x0b\x0c\r\x1b]", r"\\n\\tat ", r"\\nCaused by: ", r"\\n    at ", r"\*\*[^\s*/]", r"<span", r"</span>")
SOURCES = 64  # whose texts are known
REMEMBERED = 20_000  # lines whose verdict is kept
REMEMBERED_BYTES = 400  # of a line; longer ones are judged each time


@dataclass
class Sight:
    """The screen of what is looked for, the formats, and what was learnt of them.

    The screen has to look for CHANGED too. One for a process: it only remembers.
    """

    screen: Screen
    matcher: Matcher
    formats: Sequence[Format]
    _alike: dict[object, Alike] = field(default_factory=dict)
    _layouts: dict[bytes, Layout | None] = field(default_factory=dict)  # by example
    _goes_on: dict[bytes | str, bool] = field(default_factory=dict)

    def layout(self, line: bytes) -> Layout | None:
        """Return the layout of `line`, None when it is not certain."""
        example = example_of(line)
        if example is None:
            return None
        if example not in self._layouts:
            self._layouts[example] = layout_of(example, self.formats)
        return self._layouts[example]

    def alike(self, layout: Layout, source_id: str, labels: Labels) -> Alike:
        """Return what is known of the texts of a source in one layout."""
        key = layout.example, source_id, tuple(labels.items())
        if key not in self._alike:
            if len(self._alike) >= SOURCES:
                self._alike.clear()
            self._alike[key] = Alike(source_id, labels, layout, self.matcher, self.formats)
        return self._alike[key]

    def goes_on(self, line: bytes) -> bool:
        """Tell whether a line as it stands is sure to be no more than the continuation of an event that began with a header."""
        known = self._goes_on.get(line)
        return self._remember(line, _continues(line, self.formats)) if known is None else known

    def is_headless(self, text: str) -> bool:
        """Tell whether no event begins at `text`, from which all wrappers are off."""
        known = self._goes_on.get(text)
        return self._remember(text, header_book(self.formats).find(text) is None) if known is None else known

    def stamped(self, record: Record) -> datetime | None:
        """Return the time of the event that begins at `record` by its wrapper's word; None when its text may know better, or
        may be anything but the one event."""
        if not record.starts or record.partial or record.cut or opens_document(record.text):
            return None
        book, text = header_book(self.formats), unescape(record.text).rstrip()
        first = text.partition("\n")[0]
        headless = book.find(first) is None and (first == record.text or book.find(record.text) is None)
        return record.at if headless else None

    def _remember(self, line: bytes | str, verdict: bool) -> bool:
        if len(line) <= REMEMBERED_BYTES and len(self._goes_on) < REMEMBERED:
            self._goes_on[line] = verdict
        return verdict


def sight_of(matcher: Matcher, formats: Sequence[Format], also: Iterable[str] = ()) -> Sight:
    """Return how to skim for what `matcher` looks for, and for lines that bear one of the expressions `also`."""
    return Sight(matcher.screen((*CHANGED, *also)), matcher, formats)


def _continues(line: bytes, formats: Sequence[Format]) -> bool:
    record = unwrap_line(RawLine("", 0, line, 0), formats)
    plain = record.source_id == "" and not record.starts and not record.partial and record.text.encode() == line
    return plain and header_book(formats).find(record.text) is None
