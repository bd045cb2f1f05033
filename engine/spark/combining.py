"""Matches on their way to the keyed state: alike ones in one row, without what the state would not look at. Pure.

Nothing that correlation asks for is lost: `expanded` gives back each match with its event id, for a line that was delivered
twice is one event, and a count could not tell. What alike matches share is said once, and a storm of one line is a few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from engine.correlate.bindings import SIGHTINGS
from engine.model.matches import ActivitySpan, Match, Value
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Labels
from engine.spark.slices import Scanned, SliceFragments

MOST, MOST_TEXT = 1000, 1 << 19  # matches and characters of evidence in one row: a row is held in memory whole

_Uncombined = ActivitySpan | SliceFragments | Scanned | DeadLetter | Misdated
_BatchKey = tuple[str, str, bool, tuple[tuple[str, str], ...], tuple[str, ...]]


class MatchBatch(Struct, frozen=True):
    """Matches of one rule in one source whose labels and capture names are the same. The columns are as long as `event_ids`;
    `origins` are those that there are, by event id."""

    rule_id: str
    source_id: str
    dated: bool
    labels: Labels
    captures: Mapping[str, tuple[Value, ...]]
    event_ids: tuple[str, ...]
    numbers: tuple[int, ...]
    at: tuple[datetime, ...]
    texts: tuple[str, ...]
    origins: Mapping[str, str] = {}


def combined(items: Iterable[Match | _Uncombined]) -> Iterator[Match | MatchBatch | _Uncombined]:
    """Yield what a slice says (engine/spark/slices.scan) with alike matches in one; all else as it comes."""
    kinds: dict[_BatchKey, list[Match]] = {}
    sizes: dict[_BatchKey, int] = {}
    named = _Named()
    for item in items:
        if not isinstance(item, Match):
            yield item
        elif not named.enough(item):
            kind = _kind(item)
            kinds.setdefault(kind, []).append(item)
            sizes[kind] = sizes.get(kind, 0) + len(item.text)
            if len(kinds[kind]) >= MOST or sizes[kind] >= MOST_TEXT:
                del sizes[kind]
                yield _combined(kinds.pop(kind))
    yield from map(_combined, kinds.values())


def expanded(some: MatchBatch) -> Iterator[Match]:
    """Yield the matches that `some` was made of, in order."""
    columns = zip(some.event_ids, some.numbers, some.at, some.texts, strict=True)
    for position, (event_id, number, at, text) in enumerate(columns):
        captures = {name: values[position] for name, values in some.captures.items()}
        yield Match(
            some.rule_id,
            event_id,
            some.source_id,
            number,
            at,
            some.dated,
            captures,
            some.labels,
            text,
            some.origins.get(event_id, ""),
        )


class _Named:
    """The lines of a slice in which sources name themselves.

    A slice says by spans when its sources were heard from, so a naming line tells nothing but a member: SIGHTINGS of a kind do.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[_BatchKey, tuple[Value, ...]], set[str]] = {}

    def enough(self, match: Match) -> bool:
        """Take a match; return whether it is a naming line that adds nothing to those taken before."""
        if not match.rule_id.startswith("component:") or not match.rule_id.endswith("/names"):
            return False
        seen = self._seen.setdefault((_kind(match), tuple(match.captures.values())), set())
        if len(seen) >= SIGHTINGS:
            return True
        seen.add(match.event_id)
        return False


def _kind(match: Match) -> _BatchKey:
    return match.rule_id, match.source_id, match.dated, tuple(match.labels.items()), tuple(match.captures)


def _combined(some: list[Match]) -> Match | MatchBatch:
    first = some[0]
    if len(some) == 1:
        return first
    return MatchBatch(
        rule_id=first.rule_id,
        source_id=first.source_id,
        dated=first.dated,
        labels=first.labels,
        captures={name: tuple(match.captures[name] for match in some) for name in first.captures},
        event_ids=tuple(match.event_id for match in some),
        numbers=tuple(match.number for match in some),
        at=tuple(match.at for match in some),
        texts=tuple(match.text for match in some),
        origins={match.event_id: match.origin for match in some if match.origin},
    )
