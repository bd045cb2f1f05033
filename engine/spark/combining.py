"""Combine the matches that travel to the keyed state: matches that share rule, source and labels become one row. Pure.

`expand` restores each match with its event id, since a line that was delivered twice is one event, which a count could not
tell. What the matches share is written once, so that a storm of one line is a few rows. Naming lines beyond those that the
keyed state needs are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from engine.columns.audit import AuditResult
from engine.correlate.bindings import SIGHTINGS
from engine.model.matches import ActivitySpan, Match, Value
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Labels
from engine.spark.slices import Scanned, SliceFragments

MAX_MATCHES, MAX_TEXT_CHARS = 1000, 1 << 19  # of one row: a row is held in memory whole

_Uncombined = ActivitySpan | SliceFragments | Scanned | DeadLetter | Misdated | AuditResult
_BatchKey = tuple[str, str, bool, tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]


class MatchBatch(Struct, frozen=True):
    """Matches of one rule in one source that have the same labels, capture names and items, as columns of equal length.

    `origins` are the origins of those matches that have one, by event id.
    """

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
    items: tuple[str, ...] = ()


def combine(items: Iterable[Match | _Uncombined]) -> Iterator[Match | MatchBatch | _Uncombined]:
    """Yield the items of a slice (engine/spark/slices.scan), its matches combined into batches; other items unchanged."""
    matches_by_key: dict[_BatchKey, list[Match]] = {}
    text_sizes: dict[_BatchKey, int] = {}
    naming_lines = _NamingLines()
    for item in items:
        if not isinstance(item, Match):
            yield item
        elif not naming_lines.is_redundant(item):
            key = _batch_key(item)
            matches_by_key.setdefault(key, []).append(item)
            text_sizes[key] = text_sizes.get(key, 0) + len(item.text)
            if len(matches_by_key[key]) >= MAX_MATCHES or text_sizes[key] >= MAX_TEXT_CHARS:
                del text_sizes[key]
                yield _batch_of(matches_by_key.pop(key))
    yield from map(_batch_of, matches_by_key.values())


def expand(batch: MatchBatch) -> Iterator[Match]:
    """Yield the matches that `batch` was combined from, in order."""
    columns = zip(batch.event_ids, batch.numbers, batch.at, batch.texts, strict=True)
    for position, (event_id, number, at, text) in enumerate(columns):
        captures = {name: values[position] for name, values in batch.captures.items()}
        origin = batch.origins.get(event_id, "")
        own = (event_id, batch.source_id, number, at, batch.dated, captures, batch.labels, text, origin, batch.items)
        yield Match(batch.rule_id, *own)


class _NamingLines:
    """The lines of a slice in which sources name themselves.

    Activity spans already tell when a source was active, so a naming line adds only a member to the roster: SIGHTINGS lines
    with the same captures are enough.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[_BatchKey, tuple[Value, ...]], set[str]] = {}

    def is_redundant(self, match: Match) -> bool:
        """Add a match; return whether it is a naming line that adds nothing to the earlier ones."""
        if not match.rule_id.startswith("component:") or not match.rule_id.endswith("/names"):
            return False
        event_ids = self._seen.setdefault((_batch_key(match), tuple(match.captures.values())), set())
        if len(event_ids) >= SIGHTINGS:
            return True
        event_ids.add(match.event_id)
        return False


def _batch_key(match: Match) -> _BatchKey:
    return match.rule_id, match.source_id, match.dated, tuple(match.labels.items()), tuple(match.captures), match.items


def _batch_of(matches: list[Match]) -> Match | MatchBatch:
    first = matches[0]
    if len(matches) == 1:
        return first
    return MatchBatch(
        rule_id=first.rule_id,
        source_id=first.source_id,
        dated=first.dated,
        labels=first.labels,
        captures={name: tuple(match.captures[name] for match in matches) for name in first.captures},
        event_ids=tuple(match.event_id for match in matches),
        numbers=tuple(match.number for match in matches),
        at=tuple(match.at for match in matches),
        texts=tuple(match.text for match in matches),
        origins={match.event_id: match.origin for match in matches if match.origin},
        items=first.items,
    )
