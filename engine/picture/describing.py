"""From an incident to the description of its picture: who takes part, and what happened to whom, when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.model.incidents import VERIFIED, AlertCourse, HeartbeatRun, Incident
from engine.model.phrases import moment
from engine.model.words import ENGLISH, Words, marked
from engine.picture.description import (
    BACK,
    BEATS,
    RESOLVED,
    ROOT,
    SILENCE,
    SYMPTOM,
    Lane,
    Mark,
    Picture,
)

MAX_LANES = 12  # besides that of tocsin and people; further ones share the last
DEEDS_LANE, OTHERS_LANE = marked("what was done", "others")
_KINDS = marked("instance", "connector", "node", "controller", "worker")  # of lanes, besides those of steps
# labels that name who wrote a line, most telling first
_WRITERS = ("broker", "controller", "connector", "instance", "worker", "client", "client_id", "group")
_SUBJECTS = (*_WRITERS, "node", "topic")


class Deed(Struct, frozen=True):
    """What tocsin or a person did about an incident: `kind` is TOLD, STATE or PERSON (see description)."""

    at: datetime
    kind: str
    sentence: str


def describe(incident: Incident, deeds: Sequence[Deed] = (), words: Words = ENGLISH) -> Picture | None:
    """Return the picture of an incident in the language of `words`, whose titles are in it already; None when its lines have no
    times, or when it was stored before they were kept."""
    if not incident.course:
        return None
    source_lanes = _lanes_of_sources(incident, words)
    marks: dict[str, list[Mark]] = {}
    root_lane = _lane_of(incident.course[0], source_lanes, words, is_subject=True)
    for course in incident.course:
        lane = root_lane if course.role == ROOT else _lane_of(course, source_lanes, words)
        marks.setdefault(lane, []).extend(_marks_of(course, incident, words))
    for run in incident.heartbeats:
        marks.setdefault(_named_by(run.labels, _SUBJECTS, words), []).append(_beats(run, words))
    begin, end = _extent(mark for lane in marks.values() for mark in lane)
    lanes = [Lane(name, _by_time(of_lane), name == root_lane) for name, of_lane in _bounded(marks, root_lane, words).items()]
    now, later = _done(deeds, begin, end)
    if now or later:
        lanes.append(Lane(words(DEEDS_LANE), _by_time(now)))
        end = max([end, *(mark.begin for mark in now)])
    return Picture(incident.title, incident.severity, begin, end, tuple(lanes), tuple(later))


def _marks_of(course: AlertCourse, incident: Incident, words: Words) -> list[Mark]:
    if course.role == ROOT and incident.is_silence:
        return _silence(course, words)
    events = tuple(course.first + timedelta(seconds=offset) for offset in course.offsets_s)
    count = max(course.count, len(events))
    sentence = f"{_role(course, words)}: {course.title}{_among(course, words)}; {_when(course, count, words)}"
    last = max(course.last, *events) if events else course.last
    marks = [Mark(course.role, course.first, last, course.title, sentence, course.severity, count, events, course.event_id)]
    if course.ended_at is not None and course.role == ROOT:
        verified = f"; {words.sentence(course.why)}" if VERIFIED in course.why else ""
        over = f"{words('over')}: {course.title}{verified}"
        marks.append(Mark(RESOLVED, course.ended_at, course.ended_at, words("over"), over))
    return marks


def _role(course: AlertCourse, words: Words) -> str:
    role = {ROOT: words("root cause"), SYMPTOM: words("symptom")}.get(course.role, words("next stage"))
    return f"{role}, {words(course.severity)}"


def _among(course: AlertCourse, words: Words) -> str:
    return f" ({words('{number:,} of this kind', number=course.alerts)})" if course.alerts > 1 else ""


def _when(course: AlertCourse, count: int, words: Words) -> str:
    times, span = words.counted("{number:,} event", "{number:,} events", count), course.last - course.first
    return words("{events} within {span}", events=times, span=words.span(span)) if span >= timedelta(seconds=1) else times


def _silence(course: AlertCourse, words: Words) -> list[Mark]:
    """Return the silence of a root, and the signs of life after it. Its diamond is the last sign of life."""
    end = course.ended_at
    how_long = words("silent for {span}", span=words.span(end - course.first)) if end else words("not heard from since")
    sentence = f"{_role(course, words)}: {course.title}; {words('last sign of life')}, {how_long}"
    marks = [Mark(SILENCE, course.first, end, course.title, sentence, course.severity, 1, (), course.event_id)]
    if end is not None:
        marks.append(Mark(BACK, end, end, words("back"), words("signs of life again")))
    return marks


def _beats(run: HeartbeatRun, words: Words) -> Mark:
    every = timedelta(seconds=run.every_s)
    number = round((run.last - run.first) / every)
    step = (run.last - run.first) / max(number, 1)
    times = (*(run.first + n * step for n in range(number)), run.last)
    shown = words("heartbeat about every {span}, until {time}", span=words.span(every), time=moment(run.last))
    return Mark(BEATS, run.first, run.last, words("heartbeat"), shown, "", len(times), times)


def _lanes_of_sources(incident: Incident, words: Words) -> Mapping[str, str]:
    """Return the lane of each source that one writer alone is known to have written."""
    names: dict[str, set[str]] = {}
    for course in incident.course:
        writer = _named_by(course.labels, _WRITERS, words)
        if writer and (len(course.sources) == 1 or (course.role == ROOT and incident.is_silence)):
            for source in course.sources:
                names.setdefault(source, set()).add(writer)
    return {source: next(iter(writers)) for source, writers in names.items() if len(writers) == 1}


def _lane_of(course: AlertCourse, source_lanes: Mapping[str, str], words: Words, is_subject: bool = False) -> str:
    own = _named_by(course.labels, _SUBJECTS if is_subject else _WRITERS, words)
    if own:
        return own
    by_source = next((source_lanes[source] for source in course.sources if source in source_lanes), "")
    return by_source or next((source.rpartition("/")[2] or source for source in course.sources), words(OTHERS_LANE))


def _named_by(labels: Mapping[str, str], names: Sequence[str], words: Words) -> str:
    """Return the first of `names` that `labels` have, with its value, such as `broker 1`; empty for none."""
    return next((f"{words(name.removesuffix('_id'))} {labels[name]}" for name in names if labels.get(name, "?")[0] != "?"), "")


def _bounded(marks: Mapping[str, list[Mark]], root_lane: str, words: Words) -> Mapping[str, list[Mark]]:
    """Return the lanes in their order: that of the root, then by their first mark other than heartbeats; MAX_LANES at most."""
    order = sorted(marks, key=lambda name: (name != root_lane, *_first_of(marks[name]), name))
    if len(order) <= MAX_LANES:
        return {name: marks[name] for name in order}
    kept = {name: marks[name] for name in order[: MAX_LANES - 1] if name != words(OTHERS_LANE)}
    rest = [name for name in order if name not in kept]
    others = words("{number:,} others", number=len(rest))
    return {**kept, others: [mark for name in rest for mark in marks[name]]}


def _first_of(marks: Iterable[Mark]) -> tuple[bool, datetime]:
    ordered = sorted((mark.kind == BEATS, mark.begin) for mark in marks)
    return ordered[0]


def _done(deeds: Sequence[Deed], begin: datetime, end: datetime) -> tuple[list[Mark], list[Mark]]:
    """Return what was done while it lasted, and what was done later than twice the time that it took (at least an hour)."""
    limit = end + max(end - begin, timedelta(hours=1))
    marks = [Mark(deed.kind, deed.at, deed.at, deed.sentence, deed.sentence) for deed in deeds]
    return [mark for mark in marks if mark.begin <= limit], [mark for mark in marks if mark.begin > limit]


def _extent(marks: Iterable[Mark]) -> tuple[datetime, datetime]:
    times = [at for mark in marks for at in (mark.begin, mark.end or mark.begin)]
    return min(times), max(times)


def _by_time(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    ranks = {BEATS: 0, SILENCE: 1, ROOT: 1}
    return tuple(sorted(marks, key=lambda mark: (ranks.get(mark.kind, 2), mark.begin, mark.label)))
