"""States of sources: when a process was in a state that its component declares, by the lines that begin and end it.

Everything here is a function of the set of these lines, not of their order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from engine.model.matches import STATE_SIGN, Match
from engine.model.rules import Component

MAX_EDGES = 200  # of one phase of one log, and of beginnings and ends each: the newest
EdgesByPhase = dict[str, list[datetime]]  # by the rule id of the lines, their times in order


def add_edge(edges: EdgesByPhase, match: Match) -> bool:
    """Add a line that begins or ends a phase; return whether that changed anything. A line without a stamp is left out."""
    times = edges.setdefault(match.rule_id, [])
    if not match.dated or match.at in times or (len(times) >= MAX_EDGES and match.at < times[0]):
        return False
    insort(times, match.at)
    del times[:-MAX_EDGES]
    return True


class DeclaredStates:
    """The states that components declare, and when a log is in one of them."""

    def __init__(self, components: Iterable[Component]) -> None:
        self._phases: dict[
            str, list[tuple[str, timedelta]]
        ] = {}  # by state: of each phase the rule id without its edge, its bound
        for component in components:
            for state, phases in component.states.items():
                for number, phase in enumerate(phases):
                    at_most = timedelta(seconds=phase.at_most_s)
                    self._phases.setdefault(state, []).append((f"component:{component.name}/{state}/{number}/", at_most))

    def holds(self, states: Iterable[str], edges: EdgesByPhase, at: datetime) -> bool:
        """Return whether a log with these `edges` is in one of `states` at `at`.

        The beginning and the end belong to the state. Of several beginnings before the same end the last counts: a process
        that ended before it was through has begun anew.
        """
        return any(_within(edges, name, at_most, at) for name, at_most in self._phases_of(states))

    def _phases_of(self, states: Iterable[str]) -> Iterator[tuple[str, timedelta]]:
        return (phase for state in states for phase in self._phases.get(state, ()))


def is_edge(rule_id: str) -> bool:
    """Return whether a component line of this rule id begins or ends a state."""
    return STATE_SIGN.fullmatch(rule_id) is not None


def _within(edges: EdgesByPhase, name: str, at_most: timedelta, at: datetime) -> bool:
    begins, ends = edges.get(f"{name}begins", []), edges.get(f"{name}ends", [])
    before = bisect_right(begins, at)
    if not before or at - begins[before - 1] > at_most:
        return False
    after = bisect_left(ends, begins[before - 1])
    return after == len(ends) or at <= ends[after]
