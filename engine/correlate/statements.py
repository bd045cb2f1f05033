"""Statements about a component's members: complaints of others, their withdrawal, planned stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.correlate.aggregate import EventTime
from engine.correlate.entities import label_value
from engine.correlate.facts import Facts
from engine.correlate.tables import MomentsTable
from engine.model.matches import Match
from engine.model.rules import Absence, Component

# The role (`complaint`, `back`, `stop`) and the components that may make the statement (`stop/controller`; without a name:
# anybody); the member it names, or ""; the source that printed it, or "" where a member is named and anybody may name it.
StatementKey = tuple[str, str, str]


class Statements:
    """When members of one component were complained of, came back or were stopped on purpose.

    Args:
        speakers: by rule, the components whose sources may make its statements; any source for a rule that is not in it.
    """

    def __init__(self, absence: Absence, component: Component, speakers: Mapping[str, Sequence[str]]) -> None:
        self._absence, self._component, self._speakers = absence, component, speakers
        self._roles = _roles(absence)
        self.moments: MomentsTable[StatementKey] = MomentsTable(list[tuple[StatementKey, list[EventTime]]])

    @property
    def rule_ids(self) -> frozenset[str]:
        """The ids of the rules whose matches are statements."""
        return frozenset(self._roles)

    def add(self, match: Match, facts: Facts) -> None:
        """Add a statement, in every role that its rule has; a complaint that names no member is ignored."""
        for role in self._roles[match.rule_id]:
            member = self._named_member(match, role, facts)
            if member is None and role == "complaint":
                continue
            speakers = () if role == "complaint" else self._speakers.get(match.rule_id, ())
            kind = f"{role}/{','.join(speakers)}" if speakers else role
            source_id = match.source_id if speakers or not member else ""
            self.moments.add((kind, member or "", source_id), match.at, match.event_id)

    def of(self, role: str, member: str, facts: Facts) -> list[EventTime]:
        """Return the statements of a role about `member`, by sources that may speak for it, in order of time."""
        stamps: set[EventTime] = set()
        for (kind, named, source_id), moments in self.moments.items():
            its_role, _, speakers = kind.partition("/")
            if its_role != role or (named or facts.bindings.member(source_id, self._component.name)) != member:
                continue
            if not speakers:
                stamps.update(moments.stamps())
            elif self._may_speak(source_id, speakers.split(","), member, facts):
                stamps.update(stamp for stamp in moments.stamps() if facts.clocks.vouches(source_id, stamp[0]))
        return sorted(stamps)

    def _named_member(self, match: Match, role: str, facts: Facts) -> str | None:
        """Return the member that a line is about. A complaint names it; a stop or a return may be of the one that prints it."""
        label = self._component.label
        capture = _naming(self._absence, role).get(label)
        if capture is not None and capture in match.captures:
            return str(match.captures[capture])
        return None if role == "complaint" else label_value(match, label, label, facts.scope)

    def _may_speak(self, source_id: str, speakers: Sequence[str], member: str, facts: Facts) -> bool:
        """Return whether a source may speak for `member`: as itself, or as one of another component that answers for it."""
        if facts.bindings.may_speak(source_id, self._component.name, member):
            return True
        others = (name for name in speakers if name != self._component.name)
        return any(facts.bindings.may_speak(source_id, name) for name in others)


def _roles(absence: Absence) -> dict[str, list[str]]:
    """Return the roles of the matches of each rule."""
    sooner, stop = absence.sooner, absence.stop
    rules_of = [("complaint", sooner.rules), ("back", sooner.back)] if sooner else []
    rules_of += [("stop", stop.rules)] if stop else []
    roles: dict[str, list[str]] = {}
    for role, rule_ids in rules_of:
        for rule_id in rule_ids:
            roles.setdefault(rule_id, []).append(role)
    return roles


def _naming(absence: Absence, role: str) -> Mapping[str, str]:
    """Return the capture that names the member, by label."""
    if role == "stop":
        return absence.stop.naming if absence.stop else {}
    return absence.sooner.naming if absence.sooner else {}
