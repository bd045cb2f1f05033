"""Sources that cannot be read for a while, and what is said of that. Pure.

What is known of a stall is part of the offset of the job's sources, so that a repeated batch says the same; what is to be said
of a batch is the difference of the stalls at its two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from engine.spark.rows import InputNotice


class Stall(Struct, frozen=True):
    """`what` cannot be read since `since_s` (seconds since 1970), and `why`. `sources` are the names of those of `scope` that
    wait for it, none when it is passed over. `told`: it has been so for as long as it may be, and is an incident."""

    scope: str
    what: str
    why: str
    since_s: int
    sources: tuple[str, ...]
    told: bool = False


class Failure(Struct, frozen=True, order=True):
    """`source` of `scope` cannot read `what`, and waits for it if it `waits`; else it goes on without."""

    scope: str
    source: str
    what: str
    why: str
    waits: bool = True


def renewed(before: Sequence[Stall], failures: Iterable[Failure], now_s: int, bound_s: float) -> tuple[Stall, ...]:
    """Return the stalls there are now: one for whatever cannot be read, however many sources wait for it."""
    known = {_key(stall): stall for stall in before}
    found: dict[tuple[str, str], Stall] = {}
    for failure in sorted(failures):
        key = failure.scope, failure.what
        earlier = known.get(key) or Stall(*key, "", now_s, ())
        since_s = min(earlier.since_s, now_s)  # a clock may have been set back
        stall = found.get(key) or replace(earlier, why=failure.why, since_s=since_s, sources=())
        if failure.waits:
            told = stall.told or now_s - stall.since_s >= bound_s
            stall = replace(stall, sources=(*stall.sources, failure.source), told=told)
        found[key] = stall
    return tuple(found[key] for key in sorted(found))


def notices(before: Iterable[Stall], after: Iterable[Stall], at_s: int) -> Iterator[tuple[str, InputNotice]]:
    """Yield, with its scope, what is to be said of a batch that ended at `at_s`: of stalls that began, lasted, or ended."""
    at = datetime.fromtimestamp(at_s, UTC)
    old, new = {_key(stall): stall for stall in before}, {_key(stall): stall for stall in after}
    for key, stall in new.items():
        if key not in old:
            then = "looking again until it can be read" if stall.sources else "passed over until it can be"
            yield stall.scope, InputNotice(at, f"cannot read '{stall.what}': {stall.why}; {then}")
        if stall.told and not (key in old and old[key].told):
            lasted = at_s - stall.since_s
            yield stall.scope, InputNotice(at, f"'{stall.what}' has not been readable for {lasted} s: {stall.why}")
    for key, stall in old.items():
        if key not in new:
            again = f"is readable again after {at_s - stall.since_s} s; reading goes on where it ended"
            yield stall.scope, InputNotice(at, f"'{stall.what}' {again if stall.sources else 'is gone, or can be read now'}")


def stalled(stalls: Iterable[Stall]) -> frozenset[str]:
    """Return the names of the sources that cannot be read."""
    return frozenset(name for stall in stalls for name in stall.sources)


def _key(stall: Stall) -> tuple[str, str]:
    return stall.scope, stall.what
