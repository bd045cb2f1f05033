"""The route tree: which receivers an incident goes to, and with what timings."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.records import Labels
from engine.model.routes import Hours, Route, Timings
from engine.route.matchers import holds


class Target(Struct, frozen=True):
    """A receiver to be told, and when. `hours` are those of every route that leads to it: it is told if one of them tells.

    `instead_of`: the receiver that refused, when it is told in the place of another.
    """

    receiver: str
    timings: Timings
    hours: tuple[Hours, ...] = ()
    instead_of: str = ""


def routing_labels(incident: Incident) -> Labels:
    """Return what matchers see of an incident: its labels, and its rule, severity and component."""
    own = {"rule": incident.rule, "severity": incident.severity, "component": incident.component}
    return {**incident.labels, **own}


def route(labels: Labels, tree: Route) -> tuple[Target, ...]:
    """Return the targets for these labels in tree order, each receiver once: its first route's timings count.

    As in Alertmanager: the deepest route that holds is taken, and a route none of whose branches holds is taken itself.
    """
    first: dict[str, Target] = {}
    for target in _targets(labels, tree):
        known = first.setdefault(target.receiver, target)
        first[target.receiver] = replace(known, hours=_joined(known.hours, target.hours))
    return tuple(first.values())


def _targets(labels: Labels, node: Route) -> Iterator[Target]:
    if not holds(node.matchers, labels):
        return
    taken = False
    for branch in node.routes:
        found = list(_targets(labels, branch))
        yield from found
        taken = taken or bool(found)
        if found and not branch.goes_on:
            break
    if not taken:
        yield Target(node.receiver, node.timings, (node.hours,) if node.hours != Hours() else ())


def _joined(one: tuple[Hours, ...], other: tuple[Hours, ...]) -> tuple[Hours, ...]:
    """Return the hours of both; none at all when one of them tells at any time."""
    return tuple(dict.fromkeys((*one, *other))) if one and other else ()
