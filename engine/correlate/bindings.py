"""Bindings: which member of which component each source is, in which version, and with which settings.

A source is bound by a label of the configuration, else by two lines in which it names itself alike; one of them may be in
another file of the same rotated log. If it names itself in two ways, the name with two lines decides; two lines for both bind
it to neither. Everything here is a function of the set of lines, not of their order.

Lines that excuse or resolve count only if their source may speak for the member: see `may_speak`.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.correlate.printed import PREFIX, Printed, add_printed, printed_by, setting
from engine.correlate.source_states import DeclaredStates, EdgesByPhase, add_edge, is_edge
from engine.correlate.stated import StatedMembers
from engine.model.configs import Setting
from engine.model.incidents import Alert
from engine.model.matches import Match
from engine.model.pictures import StatedFact
from engine.model.records import REPEATED, SPEAKS_FOR, Labels
from engine.model.rules import Component

SIGHTINGS = 2
_MAX_MEMBERS = 4
_MAX_VERSIONS = 20

_ROTATED = re.compile(
    r"(?:[.\-_](?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[-_T]?[0-2]\d(?:[-_]?[0-5]\d)?)?(?:\.\d{1,3})?"  # a period, perhaps an index
    r"|(?<=[A-Za-z])\.\d{1,3})?"  # an index behind the name; the end of an address is none
    r"(?:\.(?:gz|zst))?$"
)


class Identity(Struct):
    """The lines that one source has printed about itself.

    Attributes:
        named: by component, by member, the ids of the lines that name it.
        versions: by component, the versions and when they were printed, in order of time.
        labelled: by label, the values that its items have, sorted.
        printed: the configurations that it printed, by their `client_key` (see Printed).
        edges: the lines that begin and end its states.
    """

    named: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    versions: dict[str, list[tuple[datetime, str]]] = field(default_factory=dict)
    labelled: dict[str, list[str]] = field(default_factory=dict)
    printed: dict[str, Printed] = field(default_factory=dict)
    edges: EdgesByPhase = field(default_factory=dict)


class Bindings:
    """The identities of the sources of one scope. `revision` grows whenever an answer may have changed."""

    def __init__(
        self,
        components: Iterable[Component],
        identities: Mapping[str, Identity] | None = None,
        stated: StatedMembers | None = None,
    ) -> None:
        self._components = {component.name: component for component in components}
        self._labels = frozenset((SPEAKS_FOR, REPEATED, *(component.label for component in self._components.values())))
        self.identities = dict(identities or {})
        self.stated = stated if stated is not None else StatedMembers()
        self.revision = 0
        self._agreed: dict[tuple[str, str, str], list[str]] = {}  # by log, component, member: ids of lines in any of its files
        self._states = DeclaredStates(self._components.values())
        self._edges: dict[str, EdgesByPhase] = {}  # by log, the lines that begin and end states in any of its files
        self._printers = dict.fromkeys(source_id for source_id, identity in self.identities.items() if identity.printed)
        for source_id, identity in self.identities.items():
            self._share_edges(source_id, identity)
            for name, members in identity.named.items():
                for member, ids in members.items():
                    self._add_to_log(source_id, name, member, ids)

    def add_labels(self, source_id: str, labels: Labels) -> None:
        """Add the labels of an item of the source."""
        for label in self._labels:
            value = labels.get(label)
            if value and _insert(self._identity(source_id).labelled.setdefault(label, []), value, _MAX_MEMBERS):
                self.revision += 1

    def add_fact(self, fact: StatedFact) -> None:
        """Add what a server stated about a broker or a version; other facts are ignored."""
        if self.stated.add(fact):
            self.revision += 1

    def add_line(self, match: Match) -> None:
        """Add a line with a name (`component:<name>/names`), a version (`/version`) or a configuration (`config:`), or one that
        begins or ends a state (see state_sign)."""
        if match.rule_id.startswith(PREFIX):
            self._add_printed(match)
            return
        if is_edge(match.rule_id):
            self._add_edge(match)
            return
        name, _, kind = match.rule_id.removeprefix("component:").partition("/")
        if kind == "names" and "member" in match.captures:
            self._add_name(match, name, str(match.captures["member"]))
        elif kind == "version" and "version" in match.captures:
            self._add_version(match, name, str(match.captures["version"]))

    def member(self, source_id: str, component: str) -> str | None:
        """Return the member of `component` that `source_id` is bound to; None when it is bound to none."""
        identity, of_plan = self.identities.get(source_id), self._components.get(component)
        if identity is None or of_plan is None:
            return None
        member = self._member(source_id, of_plan, identity)
        granted = self._granted(source_id)
        return member if granted is None or not granted.isdisjoint((component, f"{component} {member}")) else None

    def may_speak(self, source_id: str, component: str, member: str | None = None) -> bool:
        """Return whether lines of `source_id` count as those of `component`: of `member`, or of any member when it is None.

        The configuration decides; where it says nothing, the binding does. A process with two roles, such as a KRaft node, is
        bound to one of them and speaks for both. A source in which two members name themselves speaks for neither.
        """
        granted = self._granted(source_id)
        if granted is not None:
            return component in granted or f"{component} {member}" in granted
        own = self.member(source_id, component)
        if own is not None:
            return member in (None, own)
        identity = self.identities.get(source_id)
        named = identity.named.get(component, {}) if identity is not None else {}
        sure = [name for name, ids in named.items() if len(ids) >= SIGHTINGS]
        return len(sure) == 1 and member in (None, sure[0])

    def _member(self, source_id: str, component: Component, identity: Identity) -> str | None:
        """Return the member of a component that a source is bound to by its label, or by the lines in which it names itself."""
        labelled = identity.labelled.get(component.label, [])
        if labelled:
            return labelled[0] if len(labelled) == 1 else None
        if component.unless and self.member(source_id, component.unless) is not None:
            return None
        named = identity.named.get(component.name, {})
        sure = [member for member, ids in named.items() if len(ids) >= SIGHTINGS]
        if not sure and len(named) == 1:
            sure = [member for member in named if len(self._agreed[log_of(source_id), component.name, member]) >= SIGHTINGS]
        return sure[0] if len(sure) == 1 else None

    def _granted(self, source_id: str) -> frozenset[str] | None:
        """Return the components and members (`broker 1`) that the configuration lets a source speak for; None: it is silent."""
        identity = self.identities.get(source_id)
        values = identity.labelled.get(SPEAKS_FOR, []) if identity is not None else []
        return frozenset(name.strip() for value in values for name in value.split(",")) if values else None

    def label_of(self, component: str) -> str:
        """Return the label that holds the members of `component`; "" when there is no such component."""
        of_plan = self._components.get(component)
        return of_plan.label if of_plan is not None else ""

    def value(self, source_id: str, label: str) -> str | None:
        """Return the member that `source_id` is bound to, of any component whose members `label` holds; None without one."""
        members = (self.member(source_id, name) for name, component in self._components.items() if component.label == label)
        return next((member for member in members if member is not None), None)

    def knows_version(self, source_id: str) -> bool:
        """Return whether any component has printed its version into `source_id`, or a server that was asked stated one."""
        return bool(self.stated.versions) or (source_id in self.identities and bool(self.identities[source_id].versions))

    def version(self, source_id: str, component: str, at: datetime) -> str | None:
        """Return the version of `component` in `source_id` at `at`: the last printed before, else the first; if it printed
        none, the one that servers stated; else None."""
        identity = self.identities.get(source_id)
        printed = identity.versions.get(component) if identity else None
        if not printed:
            return self.stated.version(component, at)
        return printed[max(0, bisect_right(printed, at, key=lambda stamped: stamped[0]) - 1)][1]

    def members(self, component: str) -> dict[str, list[str]]:
        """Return the sources bound to each member of `component`, both sorted."""
        sources: dict[str, list[str]] = {}
        for source_id in sorted(self.identities):
            member = self.member(source_id, component)
            if member is not None:
                sources.setdefault(member, []).append(source_id)
        return {member: sources[member] for member in sorted(sources, key=natural)}

    def settings(self, alert: Alert, wanted: Iterable[Setting]) -> dict[str, str]:
        """Return the settings in `wanted` that the subject of `alert` certainly runs with, by class and name."""
        logs = {log_of(source_id) for source_id in alert.sources}
        own: list[Printed] = []
        others: list[Printed] = []
        for source_id in self._printers:
            (own if log_of(source_id) in logs else others).extend(self.identities[source_id].printed.values())
        if not own and not others:
            return {}
        values = ((name, setting(name, alert, own, others)) for name in sorted(wanted))
        return {" ".join(name): value for name, value in values if value is not None}

    def during(self, source_id: str, states: Iterable[str], at: datetime) -> bool:
        """Return whether the log of `source_id` was in one of `states` at `at`."""
        edges = self._edges.get(log_of(source_id))
        return edges is not None and self._states.holds(states, edges, at)

    def repeats_an_hour(self, source_id: str) -> bool:
        """Return whether `source_id` printed stamps of an hour that its time zone had twice, without an offset."""
        identity = self.identities.get(source_id)
        return identity is not None and REPEATED in identity.labelled

    def bound(self, source_id: str) -> bool:
        """Return whether `source_id` is bound to a member of any component."""
        return any(self.member(source_id, name) is not None for name in self._components)

    def roster(self) -> dict[str, tuple[str, ...]]:
        """Return the members of each component that has any, sorted."""
        rosters = ((name, tuple(self.members(name))) for name in self._components)
        return {name: members for name, members in rosters if members}

    def _identity(self, source_id: str) -> Identity:
        return self.identities.setdefault(source_id, Identity())

    def _add_name(self, match: Match, component: str, member: str) -> None:
        members = self._identity(match.source_id).named.setdefault(component, {})
        if member not in members and len(members) >= _MAX_MEMBERS:
            return
        if _insert(members.setdefault(member, []), match.event_id, SIGHTINGS):
            self._add_to_log(match.source_id, component, member, [match.event_id])
            self.revision += 1

    def _add_printed(self, match: Match) -> None:
        identity = self._identity(match.source_id)
        if add_printed(identity.printed, printed_by(match)):
            self._printers[match.source_id] = None
            self.revision += 1

    def _add_edge(self, match: Match) -> None:
        identity = self._identity(match.source_id)
        if add_edge(identity.edges, match):
            self._share_edges(match.source_id, identity)
            self.revision += 1

    def _share_edges(self, source_id: str, identity: Identity) -> None:
        """Add the lines of a file that begin and end states to those of its whole log."""
        if identity.edges:
            of_log = self._edges.setdefault(log_of(source_id), {})
            for rule_id, times in identity.edges.items():
                of_log[rule_id] = sorted({*of_log.get(rule_id, ()), *times})

    def _add_to_log(self, source_id: str, component: str, member: str, event_ids: Iterable[str]) -> None:
        """Add lines that name a member to those of its whole log."""
        agreed = self._agreed.setdefault((log_of(source_id), component, member), [])
        for event_id in event_ids:
            _insert(agreed, event_id, SIGHTINGS)

    def _add_version(self, match: Match, component: str, version: str) -> None:
        printed = self._identity(match.source_id).versions.setdefault(component, [])
        stamped = (match.at, version)
        if stamped in printed or len(printed) >= _MAX_VERSIONS:
            return
        insort(printed, stamped)
        self.revision += 1


def log_of(source_id: str) -> str:
    """Return the log that a file belongs to: its name without what rotation adds (`.1`, `.2022-10-05-17`, `-20221005.gz`)."""
    return _ROTATED.sub("", source_id)


def natural(member: str) -> tuple[int, str]:
    """Return a sort key under which 2 comes before 10."""
    return (len(member), member) if member.isdigit() else (1 << 30, member)


def _insert(values: list[str], value: str, most: int) -> bool:
    """Insert `value` into sorted values unless it is there or there are `most`; return whether it was inserted."""
    if value in values or len(values) >= most:
        return False
    insort(values, value)
    return True
