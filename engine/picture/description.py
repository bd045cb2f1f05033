"""The description of a picture: lanes and marks with their times and sentences. It knows no pixels and no SVG."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

# kinds of marks
ROOT, STAGE, SYMPTOM = "root", "stage", "symptom"  # courses of alerts
SILENCE, BACK, RESOLVED = "silence", "back", "resolved"  # no sign of life; signs of life again; the root has ended
BEATS = "beats"
TOLD, STATE, PERSON = "told", "state", "person"  # what tocsin told, decided, and what people did

MAX_EVENTS = 50  # times of single events that a course holds; beyond that only their number is known


class Mark(Struct, frozen=True):
    """Something that happened from `begin` to `end` (None: it lasts).

    kind: one of the constants above. `times` are single events in it, in order, `count` how many there were in all (more than
    `times` when these are not all known). `label` is a few words for the picture, `sentence` says it in full, without its
    time. `event_id` is the line of evidence that proves it; empty when the incident holds none.
    """

    kind: str
    begin: datetime
    end: datetime | None
    label: str
    sentence: str
    severity: str = ""
    count: int = 1
    times: tuple[datetime, ...] = ()
    event_id: str = ""

    @property
    def is_storm(self) -> bool:
        """Whether there were more events than are known one by one."""
        return len(self.times) >= MAX_EVENTS and self.count > len(self.times)


class Lane(Struct, frozen=True):
    """One that takes part: a broker, a client, a connector, a source; or tocsin and people. Marks are in order of time."""

    name: str
    marks: tuple[Mark, ...]
    is_root: bool = False


class Picture(Struct, frozen=True):
    """The picture of an incident: its lanes, that of the root first, that of tocsin and people last.

    `begin` and `end` are the times that it spans; what was done long after the last line is `later`, and not on the axis.
    """

    title: str
    severity: str
    begin: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    later: tuple[Mark, ...] = ()

    def kinds(self) -> frozenset[str]:
        """Return the kinds of marks in it."""
        return frozenset(mark.kind for lane in self.lanes for mark in lane.marks)

    def in_order(self) -> list[tuple[str, Mark]]:
        """Return every mark with the name of its lane, in order of time."""
        marks = [(lane.name, mark) for lane in self.lanes for mark in lane.marks]
        marks += [(self.lanes[-1].name if self.lanes else "", mark) for mark in self.later]
        return sorted(marks, key=lambda pair: (pair[1].begin, pair[1].kind != ROOT, pair[0], pair[1].sentence))
