"""The part of the time that a scan judges (`--since`, `--until`), and the zone in which it shows times (`--display-tz`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from engine.dsl.quantities import duration_s
from engine.errors import UsageError
from engine.model.incidents import AlertCourse, Incident
from engine.model.matches import COMPONENT_LINE, ActivitySpan, Match
from engine.model.phrases import moment
from engine.model.records import Progress, TimeBounds

_NAMING = ("/names", "/version")  # of the rule ids of lines that tell who writes


class TimeWindow(TimeBounds, frozen=True):
    """The times that a scan judges."""

    def within(self, items: Iterable[Match | ActivitySpan | Progress]) -> Iterator[Match | ActivitySpan | Progress]:
        """Yield the items of the window: matches in it, and the parts of spans in it. Lines in which processes name themselves
        count as if they were in it, and lines without a time do not if the window has a bound."""
        for item in items:
            if self.is_open or isinstance(item, Progress):
                yield item
            elif isinstance(item, ActivitySpan):
                first = item.first if self.since is None else max(item.first, self.since)
                last = item.last if self.until is None else min(item.last, self.until)
                if first <= last:
                    yield replace(item, first=first, last=last)
            elif item.dated and self.holds(item.at):
                yield item
            elif item.rule_id.startswith(COMPONENT_LINE) and item.rule_id.endswith(_NAMING):
                yield replace(item, at=self._nearest(item.at))

    def _nearest(self, at: datetime) -> datetime:
        at = at if self.since is None else max(at, self.since)
        return at if self.until is None else min(at, self.until)

    def sentence(self, zone: ZoneInfo) -> str:
        """Return the bounds in words, such as `from 2022-10-05 17:00:00 KST on`."""
        since, until = (moment(at.astimezone(zone)) if at is not None else "" for at in (self.since, self.until))
        if since and until:
            return f"from {since} to {until}"
        return f"from {since} on" if since else f"before {until}"


ALL_TIMES = TimeWindow()


def window_of(
    since: str, until: str, zone: ZoneInfo, now: datetime, options: tuple[str, str] = ("--since", "--until")
) -> TimeWindow:
    """Return the window of two `options`, empty for none: a duration back from `now` (`2h`), or a time (ISO 8601), in `zone`
    when it names none. Raises UsageError for other text and when the window is empty."""
    window = TimeWindow(_time(options[0], since, zone, now), _time(options[1], until, zone, now))
    if window.since is not None and window.until is not None and window.since >= window.until:
        raise UsageError(f"{options[1]} must be later than {options[0]}")
    return window


def _time(option: str, text: str, zone: ZoneInfo, now: datetime) -> datetime | None:
    if not text:
        return None
    try:
        return now - timedelta(seconds=duration_s(text))
    except (ValueError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} takes a duration back from now (2h) or a time (2022-10-05T17:00), not: {text}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def shown_in(incident: Incident, zone: ZoneInfo) -> Incident:
    """Return `incident` with its times in `zone`."""

    def of(at: datetime | None) -> datetime | None:
        return None if at is None else at.astimezone(zone)

    return replace(
        incident,
        first_seen=of(incident.first_seen),
        last_seen=of(incident.last_seen),
        resolved_at=of(incident.resolved_at),
        symptoms=tuple(replace(symptom, first_seen=of(symptom.first_seen)) for symptom in incident.symptoms),
        course=tuple(_shown_course(course, zone) for course in incident.course),
    )


def _shown_course(course: AlertCourse, zone: ZoneInfo) -> AlertCourse:
    ended_at = None if course.ended_at is None else course.ended_at.astimezone(zone)
    return replace(course, first=course.first.astimezone(zone), last=course.last.astimezone(zone), ended_at=ended_at)
