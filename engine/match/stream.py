"""`match`: the stage of the pipeline between decoding and correlation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from engine.match.heard import Heard
from engine.match.matcher import matcher_of
from engine.model.matches import Match, Seen
from engine.model.records import LogEvent, Progress, Tick
from engine.model.rules import Plan

Observer = Callable[[LogEvent, list[Match]], None]


def match(
    events: Iterable[LogEvent | Progress | Tick], plan: Plan, observe: Observer | None = None
) -> Iterator[Match | Seen | Progress | Tick]:
    """Yield the matches of every event, and the spans in which each source was heard from.

    A span comes out when its source pauses, at the end, and before any Progress or Tick: what those say is then judged with
    everything that was read before them. `observe` is called once for each event with its matches.
    """
    matcher, heard = matcher_of(plan), Heard()
    for item in events:
        if not isinstance(item, LogEvent):
            yield from heard.close()
            yield item
            continue
        yield from heard.event(item)
        found = matcher.match_event(item)
        if observe is not None:
            observe(item, found)
        yield from found
    yield from heard.close()
