"""The rows that cross Spark: one schema for everything, the model as JSON in `body`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from engine.codec import dumps, loads
from engine.model.incidents import Blind, Evidence, Roster, Verdict
from engine.model.matches import Match, Seen
from engine.model.records import Progress, Tick
from engine.spark.combining import Combined
from engine.spark.slices import Edges, Scanned

SCHEMA = "scope string, kind string, body string"


class Loss(Struct, frozen=True):
    """Lines [lost_from, lost_to) of a source that were gone before they were read; `at`: when the batch was planned."""

    source_id: str
    lost_from: int
    lost_to: int
    why: str
    at: datetime

    @property
    def sentence(self) -> str:
        """What is said of it."""
        where = f"offsets {self.lost_from} to {self.lost_to}"
        if self.lost_from == self.lost_to:
            where = f"after offset {self.lost_from}, nobody knows how many"
        return f"lines of '{self.source_id}' are lost ({where}): {self.why}"


class Notice(Struct, frozen=True):
    """A sentence about tocsin's own input, said at `at`."""

    at: datetime
    text: str


Item = Match | Combined | Seen | Edges | Progress | Tick | Scanned | Loss | Notice | Verdict | Evidence | Roster | Blind
Row = tuple[str, str, str]

_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (Match, Combined, Seen, Edges, Progress, Tick, Scanned, Loss, Notice, Verdict, Evidence, Roster, Blind)
}


def row(scope: str, item: Item) -> Row:
    """Return `item` as a row of SCHEMA."""
    return scope, type(item).__name__, dumps(item)


def item(kind: str, body: str) -> Item:
    """Return what `row` was made of."""
    made: Item = loads(body, _KINDS[kind])
    return made
