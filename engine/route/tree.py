"""The route tree: the receivers of an incident and their timings."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.records import Labels
from engine.model.routes import Hours, Route, Timings
from engine.route.matchers import holds


class Target(Struct, frozen=True):
    """A receiver of an incident. `hours` are those of every route that leads to it; it is muted only if all of these mute.

    `instead_of`: the receiver that refused, when this one is its fallback.
    """

    receiver: str
    timings: Timings
    hours: tuple[Hours, ...] = ()
    instead_of: str = ""


def routing_labels(incident: Incident) -> Labels:
    """Return the labels that matchers see: those of the incident, its rule, severity and component, and its id as
    `incident`."""
    own = {"rule": incident.rule, "severity": incident.severity, "component": incident.component, "incident": incident.id}
    return {**incident.labels, **own}


def route(labels: Labels, tree: Route) -> tuple[Target, ...]:
    """Return the targets for these labels in tree order, each receiver once, with the timings of its first route.

    As in Alertmanager, the deepest route that fits is taken, and a route with no fitting branch is taken itself.
    """
    targets: dict[str, Target] = {}
    for target in _targets(labels, tree):
        earlier = targets.setdefault(target.receiver, target)
        targets[target.receiver] = replace(earlier, hours=_joined(earlier.hours, target.hours))
    return tuple(targets.values())


def _targets(labels: Labels, node: Route) -> Iterator[Target]:
    if not holds(node.matchers, labels):
        return
    is_matched = False
    for branch in node.routes:
        targets = list(_targets(labels, branch))
        yield from targets
        is_matched = is_matched or bool(targets)
        if targets and not branch.goes_on:
            break
    if not is_matched:
        yield Target(node.receiver, node.timings, (node.hours,) if node.hours != Hours() else ())


def _joined(first: tuple[Hours, ...], second: tuple[Hours, ...]) -> tuple[Hours, ...]:
    """Return the hours of both, each once; empty when either has none, as that route never mutes."""
    return tuple(dict.fromkeys((*first, *second))) if first and second else ()
