"""match: events in, matches and activity spans out; the stage of the pipeline between decoding and correlation."""

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
    """Yield the matches of every event and the activity spans of every source; progress and ticks pass through unchanged.

    A span is yielded when its source pauses, at the end, and before any Progress or Tick, so that those are judged with
    everything that was read before them.

    Args:
        observe: called once for each event, with its matches.
    """
    matcher, activity = matcher_of(plan), ActivityTracker()
    for item in events:
        if not isinstance(item, LogEvent):
            yield from activity.close()
            yield item
            continue
        yield from activity.event(item)
        matches = matched_of(matcher, item, quarantine)
        if observe is not None:
            attempt(quarantine, "observe", item, observe, item, matches)
        yield from matches
    yield from activity.close()


def matched_of(matcher: Matcher, event: LogEvent, quarantine: Quarantine | None) -> list[Match]:
    """Return the matches of `event`. When a rule raises on it, a dead letter for that rule goes into `quarantine` and the other
    rules still match; when the event as a whole raises, one for the event does. Without a quarantine the error is raised."""
    if quarantine is None:
        return matcher.match_event(event)
    quarantine.note(event)
    try:
        return matcher.match_event(event)
    except OF_THE_HOST:
        raise
    except Exception as error:
        return _match_by_rule(matcher, event, quarantine, error)


def _match_by_rule(matcher: Matcher, event: LogEvent, quarantine: Quarantine, error: Exception) -> list[Match]:
    failures: dict[str, Exception] = {}
    try:
        matches = matcher.match_each(event, failures)
    except Exception as whole_event_error:
        quarantine.put("match", event, whole_event_error)
        return []
    for rule_id, failure in failures.items():
        quarantine.put("match", event, failure, rule_id)
    if not failures:
        quarantine.put("match", event, error)
    return matches
