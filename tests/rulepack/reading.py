"""Many texts matched in one pass: a matcher is costly to make, and texts under names of their own do not disturb each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from engine.match import match
from engine.model.matches import Match
from engine.model.records import Labels, Progress, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap

INGESTED_AT = datetime(2027, 1, 1, tzinfo=UTC)


def rules_of(texts: Mapping[str, tuple[str, Labels]], plan: Plan) -> Mapping[str, set[str]]:
    """Return which rules match each text, by its name. Each text comes with the labels of its lines."""
    names = list(texts)
    found: dict[str, set[str]] = {name: set() for name in names}
    events = decode(assemble(unwrap(_input(list(texts.values())), plan.formats), plan.formats), plan.formats)
    for each in match(events, plan):
        if isinstance(each, Match) and each.rule_id in plan.rules():
            number, *_ = each.labels["source"].split("#")  # the lines of several containers are several sources
            found[names[int(number)]].add(each.rule_id)
    return found


def _input(texts: Sequence[tuple[str, Labels]]) -> Iterator[RawLine | Progress]:
    for source, (text, labels) in enumerate(texts):
        for number, line in enumerate(text.encode().splitlines(), 1):
            yield RawLine(str(source), number, line, number, INGESTED_AT, labels)
        yield Progress(str(source), 1, 1, caught_up=True)
