"""Track sources that cannot be read for a while, and write notices about them. Pure.

Stalls are part of the offsets of the job's sources, so that a repeated batch has the same ones. The notices of a batch are the
difference between the stalls at its two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field
from msgspec.structs import replace

from engine.spark.rows import InputNotice


class Stall(Struct, frozen=True):
    """A resource that cannot be read. Its encoding in the checkpoint has the keys `what` and `told`.

    Attributes:
        scope: the scope of the sources that need it.
        resource: what cannot be read: a file, a topic, a broker.
        why: the reason.
        since_s: since when, in seconds since 1970.
        sources: the names of the sources that wait for it; empty when they go on without it.
        reported: whether it has lasted for as long as a stall may, so that it is an incident.
        asked: it is a server that is asked about its state; no log is behind it.
    """

    scope: str
    resource: str = field(name="what")
    why: str
    since_s: int
    sources: tuple[str, ...]
    reported: bool = field(name="told", default=False)
    asked: bool = False


class Failure(Struct, frozen=True, order=True):
    """`source` of `scope` cannot read `resource`: it waits for it if `waits`, else it goes on without. `asked`: see Stall."""

    scope: str
    source: str
    resource: str
    why: str
    waits: bool = True
    asked: bool = False


def updated_stalls(before: Sequence[Stall], failures: Iterable[Failure], now_s: int, bound_s: float) -> tuple[Stall, ...]:
    """Return the stalls as of `now_s`, ordered by scope and resource: one for each resource, however many sources wait for it.

    Args:
        before: the stalls of the batch before.
        failures: all that cannot be read now.
        bound_s: how long a stall may last before it is reported.
    """
    earlier_stalls = {_key(stall): stall for stall in before}
    stalls: dict[tuple[str, str], Stall] = {}
    for failure in sorted(failures):
        key = failure.scope, failure.resource
        earlier = earlier_stalls.get(key) or Stall(*key, "", now_s, ())
        since_s = min(earlier.since_s, now_s)  # a clock may have been set back
        stall = stalls.get(key) or replace(earlier, why=failure.why, since_s=since_s, sources=(), asked=failure.asked)
        if failure.waits:
            reported = stall.reported or now_s - stall.since_s >= bound_s
            stall = replace(stall, sources=(*stall.sources, failure.source), reported=reported)
        stalls[key] = stall
    return tuple(stalls[key] for key in sorted(stalls))


def notices(before: Iterable[Stall], after: Iterable[Stall], at_s: int) -> Iterator[tuple[str, InputNotice]]:
    """Yield notices about stalls that began, were reported or ended between `before` and `after`, with their scopes.

    Args:
        at_s: the time of the end of the batch, in seconds since 1970.
    """
    at = datetime.fromtimestamp(at_s, UTC)
    old, new = {_key(stall): stall for stall in before}, {_key(stall): stall for stall in after}
    for key, stall in new.items():
        lasted = at_s - stall.since_s
        if key not in old:
            yield stall.scope, InputNotice(at, _begun(stall))
        if stall.reported and not (key in old and old[key].reported):
            state = "has not answered" if stall.asked else "has not been readable"
            yield stall.scope, InputNotice(at, f"'{stall.resource}' {state} for {lasted} s: {stall.why}")
    for key, stall in old.items():
        if key not in new:
            yield stall.scope, InputNotice(at, _ended(stall, at_s - stall.since_s))


def _begun(stall: Stall) -> str:
    if stall.asked:
        return f"cannot ask '{stall.resource}': {stall.why}; asking again until it answers"
    consequence = "looking again until it can be read" if stall.sources else "passed over until it can be"
    return f"cannot read '{stall.resource}': {stall.why}; {consequence}"


def _ended(stall: Stall, lasted_s: int) -> str:
    if stall.asked:
        return f"'{stall.resource}' answers again after {lasted_s} s"
    if stall.sources:
        return f"'{stall.resource}' is readable again after {lasted_s} s; reading goes on where it ended"
    return f"'{stall.resource}' is gone, or can be read now"


def stalled_sources(stalls: Iterable[Stall]) -> frozenset[str]:
    """Return the names of the sources that wait for a resource to be read. One that is asked does not count: what it would
    answer is no log whose silence could be misread."""
    return frozenset(name for stall in stalls if not stall.asked for name in stall.sources)


def _key(stall: Stall) -> tuple[str, str]:
    return stall.scope, stall.resource
