"""Who speaks: which member of which component each source is, in what version, and with what settings.

A source is bound by a label of the configuration, else by two lines in which it names itself alike; one of them may stand in
another file of the same rotated log. A source that names two members is in doubt, and two lines decide; twice each bind it to
neither. Everything here is a function of the set of lines seen, not of their order.

What excuses or resolves has to come from somebody who may say so: see `may_speak`.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.correlate.printed import PREFIX, Printed, note, printed_by, setting
from engine.model.configs import Setting
from engine.model.incidents import Alert
from engine.model.matches import Match
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
    """What one source has said of itself, by component: members -> ids of naming lines; stamped versions; labels it bears;
    and the configurations it printed, by whose they are."""

    named: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    versions: dict[str, list[tuple[datetime, str]]] = field(default_factory=dict)
    labelled: dict[str, list[str]] = field(default_factory=dict)
    printed: dict[str, Printed] = field(default_factory=dict)


class Bindings:
    """The identities of the sources of one scope. `revision` grows whenever an answer may have changed."""

    def __init__(self, components: Iterable[Component], identities: Mapping[str, Identity] | None = None) -> None:
        self._components = {component.name: component for component in components}
        self._labels = frozenset((SPEAKS_FOR, REPEATED, *(component.label for component in self._components.values())))
        self.identities = dict(identities or {})
        self.revision = 0
        self._agreed: dict[tuple[str, str, str], list[str]] = {}  # log, component, member -> ids of lines of any of its files
        self._printers = dict.fromkeys(source_id for source_id, identity in self.identities.items() if identity.printed)
        for source_id, identity in self.identities.items():
            for name, members in identity.named.items():
                for member, ids in members.items():
                    self._agree(source_id, name, member, ids)

    def add_labels(self, source_id: str, labels: Labels) -> None:
        """Take the labels of one of the source's items."""
        for label in self._labels:
            value = labels.get(label)
            if value and _note(self._identity(source_id).labelled.setdefault(label, []), value, _MAX_MEMBERS):
                self.revision += 1

    def add_line(self, match: Match) -> None:
        """Take a `component:<name>/names` or `/version` line, or a printed configuration."""
        if match.rule_id.startswith(PREFIX):
            self._printed(match)
            return
        name, _, kind = match.rule_id.removeprefix("component:").partition("/")
        if kind == "names" and "member" in match.captures:
            self._named(match, name, str(match.captures["member"]))
        elif kind == "version" and "version" in match.captures:
            self._version(match, name, str(match.captures["version"]))

    def member(self, source_id: str, component: str) -> str | None:
        """Return the member of `component` that `source_id` is, if that is known."""
        identity, known = self.identities.get(source_id), self._components.get(component)
        if identity is None or known is None:
            return None
        member = self._member(source_id, known, identity)
        granted = self._granted(source_id)
        return member if granted is None or not granted.isdisjoint((component, f"{component} {member}")) else None

    def may_speak(self, source_id: str, component: str, member: str | None = None) -> bool:
        """Return whether what `source_id` prints may be the word of `component`: of `member`, or of any member when None.

        What the configuration grants decides; without that, what the source is bound to. A process that is two things at once,
        as a KRaft node may be, is bound as one of them and speaks as both. A source that two members name themselves in speaks
        for neither.
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

    def _member(self, source_id: str, known: Component, identity: Identity) -> str | None:
        """Return the member of a component that a source is by its label, or by its own words."""
        labelled = identity.labelled.get(known.label, [])
        if labelled:
            return labelled[0] if len(labelled) == 1 else None
        if known.unless and self.member(source_id, known.unless) is not None:
            return None
        named = identity.named.get(known.name, {})
        sure = [member for member, ids in named.items() if len(ids) >= SIGHTINGS]
        if not sure and len(named) == 1:
            sure = [member for member in named if len(self._agreed[log_of(source_id), known.name, member]) >= SIGHTINGS]
        return sure[0] if len(sure) == 1 else None

    def _granted(self, source_id: str) -> frozenset[str] | None:
        """Return for whom the configuration lets a source speak: components and members (`broker 1`); None: it does not say."""
        identity = self.identities.get(source_id)
        said = identity.labelled.get(SPEAKS_FOR, []) if identity is not None else []
        return frozenset(each.strip() for text in said for each in text.split(",")) if said else None

    def label_of(self, component: str) -> str:
        """Return the label that members of `component` go into; "" when there is no such component."""
        known = self._components.get(component)
        return known.label if known is not None else ""

    def value(self, source_id: str, label: str) -> str | None:
        """Return the member of any component whose members go into `label`."""
        members = (self.member(source_id, name) for name, component in self._components.items() if component.label == label)
        return next((member for member in members if member is not None), None)

    def knows_version(self, source_id: str) -> bool:
        """Return whether anything behind `source_id` has printed its version."""
        return source_id in self.identities and bool(self.identities[source_id].versions)

    def version(self, source_id: str, component: str, at: datetime) -> str | None:
        """Return the version of `component` that ran behind `source_id` at `at`: the last one printed before, or the first."""
        identity = self.identities.get(source_id)
        printed = identity.versions.get(component) if identity else None
        if not printed:
            return None
        return printed[max(0, bisect_right(printed, at, key=lambda stamped: stamped[0]) - 1)][1]

    def members(self, component: str) -> dict[str, list[str]]:
        """Return the sources bound to each member of `component`, both sorted."""
        found: dict[str, list[str]] = {}
        for source_id in sorted(self.identities):
            member = self.member(source_id, component)
            if member is not None:
                found.setdefault(member, []).append(source_id)
        return {member: found[member] for member in sorted(found, key=natural)}

    def settings(self, alert: Alert, wanted: Iterable[Setting]) -> dict[str, str]:
        """Return what `alert` is about runs with: by class and name, those of `wanted` that are known for certain."""
        logs = {log_of(source_id) for source_id in alert.sources}
        own: list[Printed] = []
        others: list[Printed] = []
        for source_id in self._printers:
            (own if log_of(source_id) in logs else others).extend(self.identities[source_id].printed.values())
        if not own and not others:
            return {}
        found = ((each, setting(each, alert, own, others)) for each in sorted(wanted))
        return {" ".join(each): value for each, value in found if value is not None}

    def repeats_an_hour(self, source_id: str) -> bool:
        """Return whether `source_id` printed stamps of an hour that its zone had twice, without saying which."""
        identity = self.identities.get(source_id)
        return identity is not None and REPEATED in identity.labelled

    def bound(self, source_id: str) -> bool:
        """Return whether `source_id` is a known member of anything."""
        return any(self.member(source_id, name) is not None for name in self._components)

    def roster(self) -> dict[str, tuple[str, ...]]:
        """Return the members known of each component that has any."""
        rosters = ((name, tuple(self.members(name))) for name in self._components)
        return {name: members for name, members in rosters if members}

    def _identity(self, source_id: str) -> Identity:
        return self.identities.setdefault(source_id, Identity())

    def _named(self, match: Match, component: str, member: str) -> None:
        members = self._identity(match.source_id).named.setdefault(component, {})
        if member not in members and len(members) >= _MAX_MEMBERS:
            return
        if _note(members.setdefault(member, []), match.event_id, SIGHTINGS):
            self._agree(match.source_id, component, member, [match.event_id])
            self.revision += 1

    def _printed(self, match: Match) -> None:
        identity = self._identity(match.source_id)
        if note(identity.printed, printed_by(match)):
            self._printers[match.source_id] = None
            self.revision += 1

    def _agree(self, source_id: str, component: str, member: str, event_ids: Iterable[str]) -> None:
        agreed = self._agreed.setdefault((log_of(source_id), component, member), [])
        for event_id in event_ids:
            _note(agreed, event_id, SIGHTINGS)

    def _version(self, match: Match, component: str, version: str) -> None:
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
    """Sort key under which 2 comes before 10."""
    return (len(member), member) if member.isdigit() else (1 << 30, member)


def _note(known: list[str], value: str, most: int) -> bool:
    """Add `value` to `known` unless it is there or there are `most`; return whether it was added."""
    if value in known or len(known) >= most:
        return False
    insort(known, value)
    return True
