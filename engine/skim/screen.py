"""What skimming asks of the matcher: which events may bear something, and whether other digits may matter to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from itertools import pairwise

from msgspec import Struct

from engine.match import Matcher
from engine.match.checks import expression
from engine.match.digits import may_differ, widened
from engine.match.fields import Fields
from engine.model.records import LogEvent


class Borne(Struct, frozen=True):
    """What an event may bear: whether it `counts` each time, and where what is known once it was said stands."""

    counts: bool
    named: Sequence[tuple[int, int]]


_COUNTS = Borne(counts=True, named=())
KNOWN_BYTES = 8 << 20  # of events that are remembered


class Screen:
    """Tells which events may bear something, by the prefilter of `matcher` and the expressions `also`; it remembers texts."""

    complete = True

    def __init__(self, matcher: Matcher, also: Iterable[str]) -> None:
        self._matcher = matcher
        self._also = expression("(?m)" + "|".join(f"(?:{widened(regex) or ''})" for regex in also))
        self._known: dict[bytes, bool] = {}
        self._bytes = 0

    @property
    def lost(self) -> int:
        """How many texts had a sign that Hyperscan did not find."""
        return self._matcher.prefilter.lost

    def bearing(self, text: bytes, begins: Sequence[int]) -> Sequence[tuple[int, Borne]]:
        """Return which of the events that begin in `text` at `begins` may bear something. Every digit in `text` is a 0."""
        events = (text[begin:end] for begin, end in pairwise((*begins, len(text))))
        return [(number, _COUNTS) for number, event in enumerate(events) if self._bears(event)]

    def _bears(self, event: bytes) -> bool:
        known = self._known.get(event)
        if known is None:
            if self._bytes > KNOWN_BYTES:
                self._known, self._bytes = {}, 0
            self._bytes += len(event)
            known = self._known[event] = self._matcher.may_match(event) or self._also.search(event) is not None
        return known


def decide(regexes: Iterable[str], text: bytes) -> bool:
    """Tell whether one of `regexes` may match at the beginning of `text` with some digits in it and not with others."""
    telling = (wide for regex in regexes if (wide := widened(regex)) != regex)
    return any(wide is None or expression(wide).match(text) for wide in telling)


def digits_matter(matcher: Matcher, text: bytes, fields: Set[str]) -> bool:
    """Tell whether an event with this text may have other matches when digits in it, or in `fields`, differ."""
    at = datetime.now(UTC)
    event = LogEvent("", "", 0, 0, None, at, text.decode("utf-8", "replace"), "")
    for detector in matcher.possible(Fields(event)):
        if detector.rule_id.startswith("config:"):
            return True
        if any(may_differ(test, text) if test.field == "text" else test.field in fields for test in detector.digit_tests):
            return True
    return False
