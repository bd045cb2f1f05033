"""`match`: the stage of the pipeline between decoding and correlation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from engine.match.activity import ActivityTracker
from engine.match.matcher import Matcher, matcher_of
from engine.model.matches import ActivitySpan, Match
from engine.model.records import LogEvent, Progress, Tick
from engine.model.rules import Plan
from engine.quarantine import OF_THE_HOST, Quarantine, attempt

Observer = Callable[[LogEvent, list[Match]], None]


def match(
    events: Iterable[LogEvent | Progress | Tick],
    plan: Plan,
    observe: Observer | None = None,
    quarantine: Quarantine | None = None,
) -> Iterator[Match | ActivitySpan | Progress | Tick]:
    """Yield the matches of every event, and the spans in which each source was heard from.

    A span comes out when its source pauses, at the end, and before any Progress or Tick: what those say is then judged with
    everything that was read before them. `observe` is called once for each event with its matches.
    """
    matcher, heard = matcher_of(plan), ActivityTracker()
    for item in events:
        if not isinstance(item, LogEvent):
            yield from heard.close()
            yield item
            continue
        yield from heard.event(item)
        found = matched_of(matcher, item, quarantine)
        if observe is not None:
            attempt(quarantine, "observe", item, observe, item, found)
        yield from found
    yield from heard.close()


def matched_of(matcher: Matcher, event: LogEvent, quarantine: Quarantine | None) -> list[Match]:
    """Return the matches of `event`; what raises goes into `quarantine`: the rules that cannot be tried on it, or all of it.
    Without a quarantine it raises."""
    if quarantine is None:
        return matcher.match_event(event)
    quarantine.note(event)
    try:
        return matcher.match_event(event)
    except OF_THE_HOST:
        raise
    except Exception as error:
        return _each(matcher, event, quarantine, error)


def _each(matcher: Matcher, event: LogEvent, quarantine: Quarantine, error: Exception) -> list[Match]:
    failures: dict[str, Exception] = {}
    try:
        matches = matcher.match_each(event, failures)
    except Exception as all_of_it:
        quarantine.put("match", event, all_of_it)
        return []
    for rule_id, failure in failures.items():
        quarantine.put("match", event, failure, rule_id)
    if not failures:
        quarantine.put("match", event, error)
    return matches
