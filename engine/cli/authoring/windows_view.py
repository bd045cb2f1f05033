"""Explain a correlation: the occurrences that it counts, the window in which it came nearest, and what was missing there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.model.expressions import Expression, evaluate
from engine.model.matches import Match, Value
from engine.model.phrases import lasting, moment
from engine.model.rules import Correlation

ENOUGH = 10_000  # counts beyond which nothing is searched that a condition may need
MOST_SHOWN = 5


class CountedOccurrence(Struct, frozen=True):
    """A match, or an alert of another correlation, that a correlation counts: the rule, when, and labels and captures."""

    rule: str
    at: datetime
    facts: Mapping[str, Value]


class NearestWindow(Struct, frozen=True):
    """How near a correlation came for one entity. `nearness` orders them, from 0 to 1."""

    entity: str
    sentence: str
    nearness: float


def occurrences_of(matches: Iterable[Match]) -> list[CountedOccurrence]:
    """Return the dated matches as occurrences, in order of time."""
    dated = [match for match in matches if match.dated]
    return sorted(
        (CountedOccurrence(m.rule_id, m.at, {**m.labels, **m.captures}) for m in dated), key=lambda occurrence: occurrence.at
    )


def correlation_lines(
    correlation: Correlation,
    condition: str,
    occurrences: Sequence[CountedOccurrence],
    undated: int,
    collapse_s: Mapping[str, float],
) -> Iterator[str]:
    """Yield lines about what a correlation counted, and the nearest windows of MOST_SHOWN entities.

    Args:
        condition: its condition as text.
        occurrences: in order of time.
        undated: the matches without a time, which count in no window.
        collapse_s: by rule, the time from the first match of an entity within which all are one occurrence; 0 for none.
    """
    named = (*correlation.rules, *correlation.expect)
    counts = Counter(occurrence.rule for occurrence in occurrences)
    told = ", ".join(f"{rule} ({counts[rule]})" for rule in dict.fromkeys(named))
    yield f"counts {told}" if told else "counts no matches: it waits for lines that do not come"
    if occurrences:
        yield f"  from {moment(occurrences[0].at)} to {moment(occurrences[-1].at)}"
    if undated:
        yield f"  {undated} more without a time count in no window"
    nearest = sorted(
        (
            _nearest(correlation, condition, entity, _collapsed(group, collapse_s))
            for entity, group in _by_entity(correlation, occurrences).items()
            if correlation.absence is None
        ),
        key=lambda window: (-window.nearness, window.entity),
    )
    for window in nearest[:MOST_SHOWN]:
        yield f"  {window.entity or 'all'}: {window.sentence}"
    if len(nearest) > MOST_SHOWN:
        yield f"  and {len(nearest) - MOST_SHOWN} more"


def _by_entity(correlation: Correlation, occurrences: Iterable[CountedOccurrence]) -> Mapping[str, list[CountedOccurrence]]:
    labels = [(label, name) for label, name in correlation.rule.entity.items() if label != "cluster"]
    groups: dict[str, list[CountedOccurrence]] = {}
    for occurrence in occurrences:
        entity = " ".join(f"{label}={occurrence.facts.get(name, '?')}" for label, name in labels)
        groups.setdefault(entity, []).append(occurrence)
    return groups


def _collapsed(group: Sequence[CountedOccurrence], collapse_s: Mapping[str, float]) -> list[CountedOccurrence]:
    """Return the first of the occurrences of each rule that are one by its `collapse`."""
    firsts: list[CountedOccurrence] = []
    first_at: dict[str, datetime] = {}
    for occurrence in group:
        first = first_at.get(occurrence.rule)
        if (
            first is None
            or occurrence.at - first > timedelta(seconds=collapse_s.get(occurrence.rule, 0.0))
            or not collapse_s.get(occurrence.rule)
        ):
            first_at[occurrence.rule] = occurrence.at
            firsts.append(occurrence)
    return firsts


def _nearest(correlation: Correlation, condition: str, entity: str, group: Sequence[CountedOccurrence]) -> NearestWindow:
    span = timedelta(seconds=correlation.timespan_s)
    if correlation.type == "temporal_ordered":
        return _ordered(correlation, entity, group, span)
    if correlation.type == "pair":
        return _paired(correlation, entity, group, span)
    return _counted(correlation, condition, entity, group, span)


def _counted(
    correlation: Correlation, condition: str, entity: str, group: Sequence[CountedOccurrence], span: timedelta
) -> NearestWindow:
    """Return the window with the highest count: of occurrences, or of distinct values of the field."""
    begin, best_begin, best_end, best = 0, 0, 0, 0
    for end, last in enumerate(group):
        while last.at - group[begin].at > span:
            begin += 1
        number = _count(correlation.field, group[begin : end + 1])
        if number > best:
            best, best_begin, best_end = number, begin, end
    window = group[best_begin : best_end + 1]
    what = f"{best} values of {correlation.field}" if correlation.field else f"{best}"
    where = f"{moment(window[0].at)} to {window[-1].at:%H:%M:%S}" if window else "never"
    sentence = f"at most {what} within {lasting(span)} ({where})"
    missing = _missing(correlation.condition, best)
    if missing == 0:
        return NearestWindow(entity, f"{sentence}: `{condition}` holds", 1.0)
    if missing is None:
        return NearestWindow(entity, f"{sentence}: no count makes `{condition}` hold", 0.0)
    return NearestWindow(entity, f"{sentence}; `{condition}` needs {missing} more", best / (best + missing))


def _count(field: str, window: Sequence[CountedOccurrence]) -> int:
    return len({occurrence.facts[field] for occurrence in window if field in occurrence.facts}) if field else len(window)


def _missing(condition: Expression | None, number: int) -> int | None:
    """Return how many more a count needs for its condition to hold; None when no count up to ENOUGH does."""
    if condition is None:
        return 0 if number else 1
    return next((more for more in range(ENOUGH) if evaluate(condition, {"count": number + more}) is True), None)


def _ordered(correlation: Correlation, entity: str, group: Sequence[CountedOccurrence], span: timedelta) -> NearestWindow:
    """Return the longest beginning of the sequence of rules within the time span."""
    best: list[CountedOccurrence] = []
    for number, first in enumerate(group):
        if first.rule != correlation.rules[0]:
            continue
        chain = [first]
        for occurrence in group[number + 1 :]:
            if occurrence.at - first.at > span or len(chain) == len(correlation.rules):
                break
            if occurrence.rule == correlation.rules[len(chain)]:
                chain.append(occurrence)
        best = max(best, chain, key=len)
    if len(best) == len(correlation.rules):
        return NearestWindow(entity, f"all in order from {moment(best[0].at)} to {best[-1].at:%H:%M:%S}", 1.0)
    wanted = correlation.rules[len(best)]
    if not best:
        return NearestWindow(entity, f"no {wanted}, which comes first", 0.0)
    passed = ", ".join(f"{occurrence.rule} at {occurrence.at:%H:%M:%S}" for occurrence in best)
    sentence = f"{passed} (from {moment(best[0].at)}); no {wanted} within {lasting(span)}"
    return NearestWindow(entity, sentence, len(best) / len(correlation.rules))


def _paired(correlation: Correlation, entity: str, group: Sequence[CountedOccurrence], span: timedelta) -> NearestWindow:
    """Return the opening match that waited longest for its answer."""
    openings = [occurrence for occurrence in group if occurrence.rule in correlation.rules]
    answers = [occurrence.at for occurrence in group if occurrence.rule in correlation.expect]
    if not openings:
        return NearestWindow(entity, f"no {' or '.join(correlation.rules)}, which opens the pair", 0.0)
    waits = [
        (min((at - occurrence.at for at in answers if at >= occurrence.at), default=timedelta.max), occurrence)
        for occurrence in openings
    ]
    wait, opening = max(waits, key=lambda pair: pair[0])
    began = f"{opening.rule} at {moment(opening.at)}"
    if wait > span:
        return NearestWindow(entity, f"{began} has no {' or '.join(correlation.expect)} within {lasting(span)}", 1.0)
    return NearestWindow(entity, f"{began} was answered after {lasting(wait)}, within {lasting(span)}", wait / span)
