"""From lines in which servers that were asked state something to facts about a cluster; and what correlation itself reads of
these: which brokers there are, and which versions run."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.incidents import DAWN
from engine.model.matches import ANSWER_SIGN, Match
from engine.model.pictures import StatedFact
from engine.model.rules import AnswerLines, Plan

ASKED = "asked"  # the label of lines of a server that was asked
_OF_THE_PARSER = (("connector", "is"), ("connector", "gone"), ("connector-topics", "gone"))  # out of documents of a server

AWAY, REMOVED = ("fenced", "absent"), "removed"  # states of a broker; removed: nothing is assigned to it either
MOST_CHANGES = 200  # of one thing that are remembered
# what tells the version that a component runs: the kind of fact, its name if it matters, the value
_VERSIONS = (
    ("feature", "metadata.version", "supported", ("broker", "controller")),
    ("worker-version", "", "version", ("connect",)),
)

Stamped = tuple[datetime, str]  # since when, what


class StatedMembers(Struct):
    """The states of brokers and the versions of components as servers stated them, each by name and in order of time."""

    brokers: dict[str, list[Stamped]] = field(default_factory=dict)
    versions: dict[str, list[Stamped]] = field(default_factory=dict)

    def add(self, fact: StatedFact) -> bool:
        """Add a fact; return whether it is news."""
        if fact.kind == "broker" and fact.values:
            return _inserted(self.brokers.setdefault(fact.name, []), (fact.at, str(fact.values["state"])))
        versions = (
            _inserted(self.versions.setdefault(component, []), (fact.at, str(fact.values[value])))
            for kind, name, value, components in _VERSIONS
            if fact.kind == kind and name in ("", fact.name) and value in fact.values
            for component in components
        )
        return sum(versions) > 0

    def version(self, component: str, at: datetime) -> str | None:
        """Return the version of `component` at `at`: the last one stated before, else the first, else None."""
        stated = self.versions.get(component, ())
        return stated[max(0, bisect_right(stated, at, key=lambda stamped: stamped[0]) - 1)][1] if stated else None

    def removed_at(self, broker: str) -> datetime | None:
        """Return when `broker` was removed from the cluster; None while it belongs to it, or when nobody was asked."""
        at, state = self._last(broker)
        return at if state == REMOVED else None

    def present(self) -> Mapping[str, tuple[datetime, bool]]:
        """Return the brokers that belong to the cluster: since when that is known, and whether each is away now."""
        return {
            name: (stated[0][0], self._last(name)[1] in AWAY)
            for name, stated in sorted(self.brokers.items())
            if self._last(name)[1] != REMOVED
        }

    def _last(self, broker: str) -> tuple[datetime | None, str]:
        stated = self.brokers.get(broker)
        return stated[-1] if stated else (None, "")


def answers_of(plan: Plan) -> Mapping[tuple[str, str], AnswerLines]:
    """Return what the components of `plan` answer, by component and kind."""
    return {(component.name, kind): lines for component in plan.components for kind, lines in component.answers.items()}


def fact_of(match: Match, scope: str, answers: Mapping[tuple[str, str], AnswerLines]) -> StatedFact | None:
    """Return the fact that a line states; None for a line of another kind, and for one with a time that no server was asked
    for: an application may have printed it."""
    sign = ANSWER_SIGN.fullmatch(match.rule_id)
    lines = answers.get((sign["component"], sign["kind"])) if sign is not None else None
    if sign is None or lines is None:
        return None
    if match.dated and ASKED not in match.labels and (sign["kind"], sign["edge"]) not in _OF_THE_PARSER:
        return None
    values = {**{name: match.labels[name] for name in lines.by if name in match.labels}, **match.captures}
    if any(name not in values for name in lines.by):
        return None
    name = "/".join(str(values[label]) for label in lines.by)
    return StatedFact(scope, sign["kind"], name, match.at if match.dated else DAWN, values if sign["edge"] == "is" else {})


def _inserted(stated: list[Stamped], stamped: Stamped) -> bool:
    """Insert what was stated, if it is another one than before; return whether it was inserted."""
    at = bisect_right(stated, stamped[0], key=lambda earlier: earlier[0])
    if at and stated[at - 1][1] == stamped[1]:
        return False
    if at < len(stated) and stated[at][1] == stamped[1]:
        del stated[at]  # it was so earlier
    insort(stated, stamped)
    del stated[:-MOST_CHANGES]
    return True
