"""Brokers that print, fall silent and are complained of, for tests of what is said of a silence."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.incidents import Alert
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress
from engine.model.rules import Absence, Plan, Sooner, Stop
from tests.building import absence, broker, match, plan, progress, seen, signature
from tests.unit.correlate.saying import alerts

MINUTE = 60.0
SOONER = Sooner(("lost",), {"broker": "node"}, 60.0, ("back",))
PLANNED = Stop(("stopping",), 120.0)
INFORM = [signature(name, severity="info") for name in ("lost", "back", "stopping")]
PLAN = plan(
    *INFORM, absence("silent", Absence("broker", 0.0, SOONER, PLANNED)), components=(broker(),), context={"bootstrap": "b:9092"}
)
NOT_BACK = plan(*INFORM, absence("silent", Absence("broker", 4 * 3600.0, after=PLANNED)), components=(broker(),))
DIES = 20 * MINUTE  # its third heartbeat
DEADLINE = DIES + 25 * MINUTE


def beats(number: str, *minutes: float, step: float = 10.0) -> list[Match | ActivitySpan]:
    """Return what a broker prints that says nothing but its heartbeat, from minute to minute."""
    first, last = minutes
    times = [m * MINUTE for m in _steps(first, last, step)]
    source = f"{number}.log"
    naming = [match("component:broker/names", s, source, member=number) for s in times]
    lines = [match("component:broker/heartbeat", s, source, beat=0, every_s=600.0) for s in times]
    return [*naming, *lines, *(seen(source, s, s) for s in times)]


def _steps(first: float, last: float, step: float) -> Iterable[float]:
    while first <= last:
        yield first
        first += step


def read(*numbers: str) -> list[Progress]:
    return [progress(f"{number}.log") for number in numbers]


def cluster(size: int = 3, until: float = 60.0, **dead: object) -> list[object]:
    """Return brokers 1 to `size`: the first dies at minute 20, the others go on until minute `until`."""
    others = [item for n in range(2, size + 1) for item in beats(str(n), 0, until)]
    return [*beats("1", 0, 20), *others, *read(*(str(n) for n in range(1, size + 1)))]


def silent(items: Iterable[object], made: Plan = PLAN) -> list[Alert]:
    return alerts(items, made, "silent")


def complaint(seconds: float, rule: str = "lost") -> Match:
    return match(rule, seconds, "2.log", node=1)


def young(*until: float) -> list[object]:
    """Return a cluster whose first broker printed two lines and stopped; the others go on until so many seconds."""
    others = [
        item
        for n, s in zip("23", until, strict=True)
        for item in [*beats(n, 0, 0), *beats(n, 0.5, 0.5), seen(f"{n}.log", 0, s)]
    ]
    return [*beats("1", 0, 0), *beats("1", 0.5, 0.5), *others, *read("1", "2", "3")]
