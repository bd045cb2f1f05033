"""Small pictures for lists: the occurrences of one incident, and the last day by severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from xml.sax.saxutils import quoteattr

from engine.model.incidents import AlertCourse, Incident
from engine.model.phrases import moment
from engine.model.rules import SEVERITIES
from engine.model.words import ENGLISH, Words
from engine.picture.description import MAX_EVENTS

_BARS, _WIDTH, _HEIGHT = 24, 96, 22
_HOURS = 24
_COLOURS = {"critical": "#b00020", "high": "#b93a06", "medium": "#7d5a00", "low": "#1d5fa8", "info": "#4b5563"}


def occurrences(incident: Incident, bars: int = _BARS) -> list[int]:
    """Return how many events an incident had, root and symptoms, in each of `bars` equal parts of its time; [] without times.

    Events whose times are not known one by one (see AlertCourse) are spread between those that are.
    """
    if not incident.course:
        return []
    begin = min(course.first for course in incident.course)
    end = max(course.last for course in incident.course)
    width = max((end - begin) / bars, timedelta(seconds=1))
    counts = [0] * bars
    for course in incident.course:
        for at in _times(course):
            counts[min(max((at - begin) // width, 0), bars - 1)] += 1
    return counts


def sparkline(incident: Incident, words: Words = ENGLISH) -> str:
    """Return the occurrences of an incident as a small SVG with its text; empty without times."""
    counts = occurrences(incident)
    if not counts:
        return ""
    total, most = sum(counts), max(counts)
    begin = min(course.first for course in incident.course)
    text = words(
        "{events} from {time} on, at most {most:,} in a 24th of its time",
        events=words.counted("{number:,} event", "{number:,} events", total),
        time=moment(begin),
        most=most,
    )
    step = _WIDTH / _BARS
    bars = "".join(
        f'<rect x="{n * step:.0f}" y="{_HEIGHT - height}" width="{step - 1:.0f}" height="{height}"/>'
        for n, count in enumerate(counts)
        if count and (height := max(3, round(_HEIGHT * count / most)))
    )
    return (
        f'<svg class="spark {incident.severity}" role="img" aria-label={quoteattr(text)} viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" fill="{_COLOURS.get(incident.severity, "#4b5563")}"><title>{text}</title>'
        f'<line class="grid" x1="0" y1="{_HEIGHT - 0.5}" x2="{_WIDTH}" y2="{_HEIGHT - 0.5}" stroke="#d3d7db"/>{bars}</svg>'
    )


def day_strip(incidents: Sequence[tuple[str, datetime, datetime, int]], now: datetime, words: Words = ENGLISH) -> str:
    """Return the last 24 hours as a strip: for each hour how many incidents were going on, by severity, with their text.

    Args:
        incidents: severity, first and last time of each, and how many there are with the same.
    """
    begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    hours = [_going_on(incidents, begin, n) for n in range(_HOURS)]
    most = max((sum(hour.values()) for hour in hours), default=0)
    columns = "".join(_column(n, hour, most, begin, words) for n, hour in enumerate(hours) if hour)
    total = sum(1 for hour in hours if hour)
    text = words(
        "Incidents by hour, {begin} to {end}: in {number} of {hours} hours, at most {most} at once",
        begin=moment(begin),
        end=moment(now),
        number=total,
        hours=_HOURS,
        most=most,
    )
    return (
        f'<svg class="day" role="img" aria-label={quoteattr(text)} viewBox="0 0 480 40" preserveAspectRatio="none" width="480"'
        f' height="40"><title>{text}</title>'
        f'<line class="grid" x1="0" y1="39.5" x2="480" y2="39.5" stroke="#d3d7db"/>{columns}</svg>'
    )


def _times(course: AlertCourse) -> Iterable[datetime]:
    """Return the times of a course's events, those between the first and the last known ones spread evenly."""
    known = [course.first + timedelta(seconds=offset) for offset in course.offsets_s] or [course.first, course.last][
        : course.count
    ]
    unknown = course.count - len(known)
    if (course.offsets_s and len(known) < MAX_EVENTS) or unknown <= 0:
        return known
    half = len(known) // 2
    step = (known[half] - known[half - 1]) / (unknown + 1) if len(known) > 1 else timedelta()
    parts = min(unknown, 2000)  # a storm of millions is drawn from as many
    return [*known, *(known[half - 1] + step * (unknown + 1) / (parts + 1) * (n + 1) for n in range(parts))]


def _going_on(incidents: Sequence[tuple[str, datetime, datetime, int]], begin: datetime, hour: int) -> dict[str, int]:
    start = begin + timedelta(hours=hour)
    end, counts = start + timedelta(hours=1), dict[str, int]()
    for severity, first, last, number in incidents:
        if first < end and last >= start:
            counts[severity] = counts.get(severity, 0) + number
    return counts


def _column(number: int, hour: dict[str, int], most: int, begin: datetime, words: Words) -> str:
    start = begin + timedelta(hours=number)
    text = ", ".join(_counted(hour[severity], severity, words) for severity in reversed(SEVERITIES) if severity in hour)
    parts, y = [], 40.0
    for severity in SEVERITIES:
        if severity in hour:
            height = 38 * hour[severity] / most
            y -= height
            parts.append(
                f'<rect class="{severity}" x="{number * 20 + 1}" y="{y:.1f}" width="18" height="{height:.1f}"'
                f' fill="{_COLOURS[severity]}"/>'
            )
    return f"<g><title>{start:%H:%M}: {text}</title>{''.join(parts)}</g>"


def _counted(number: int, severity: str, words: Words) -> str:
    return words("{number} {severity}", number=number, severity=words(severity))
