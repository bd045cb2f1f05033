"""Sources that cannot be read for a while, and what is said of that. Pure.

What is known of a stall is part of the offset of the job's sources, so that a repeated batch says the same; what is to be said
of a batch is the difference of the stalls at its two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine.errors import SourceAway
from engine.spark.rows import Notice


@dataclass(frozen=True, slots=True)
class Stall:
    """`what` cannot be read since `since_s` (seconds since 1970), and `why`. `sources` are the names of those of `scope` that
    wait for it. `told`: it has been so for as long as it may be, and is an incident."""

    scope: str
    what: str
    why: str
    since_s: int
    sources: tuple[str, ...]
    told: bool = False


Failures = Mapping[tuple[str, str], SourceAway]  # by scope and name of a source


def renewed(before: Sequence[Stall], failures: Failures, now_s: int, bound_s: float) -> tuple[Stall, ...]:
    """Return the stalls there are now: one for whatever cannot be read, however many sources wait for it."""
    known = {_key(stall): stall for stall in before}
    found: dict[tuple[str, str], Stall] = {}
    for (scope, name), failure in sorted(failures.items(), key=lambda item: item[0]):
        key = scope, failure.what
        stall = found.get(key) or replace(
            known.get(key) or Stall(scope, failure.what, "", now_s, ()), why=str(failure), sources=()
        )
        found[key] = replace(stall, sources=(*stall.sources, name), told=stall.told or now_s - stall.since_s >= bound_s)
    return tuple(found[key] for key in sorted(found))


def notices(before: Iterable[Stall], after: Iterable[Stall], at_s: int) -> Iterator[tuple[str, Notice]]:
    """Yield, with its scope, what is to be said of a batch that ended at `at_s`: of stalls that began, lasted, or ended."""
    at = datetime.fromtimestamp(at_s, UTC)
    old, new = {_key(stall): stall for stall in before}, {_key(stall): stall for stall in after}
    for key, stall in new.items():
        if key not in old:
            yield stall.scope, Notice(at, f"cannot read '{stall.what}': {stall.why}; looking again until it can be read")
        if stall.told and not (key in old and old[key].told):
            lasted = at_s - stall.since_s
            yield stall.scope, Notice(at, f"'{stall.what}' has not been readable for {lasted} s: {stall.why}")
    for key, stall in old.items():
        if key not in new:
            lasted = at_s - stall.since_s
            yield stall.scope, Notice(at, f"'{stall.what}' is readable again after {lasted} s; reading goes on where it ended")


def stalled(stalls: Iterable[Stall]) -> frozenset[str]:
    """Return the names of the sources that cannot be read."""
    return frozenset(name for stall in stalls for name in stall.sources)


def _key(stall: Stall) -> tuple[str, str]:
    return stall.scope, stall.what
