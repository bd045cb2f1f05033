"""Advice on tocsin.yml as a whole: names that do not exist among rules, and entries that nothing uses."""

from __future__ import annotations

from collections.abc import Iterable

from engine.config.receivers import keeps_record
from engine.config.route_advice import advise_routes
from engine.config.routing import hours_of, receivers_of
from engine.config.settings import Examination
from engine.config.vocabulary import DEFAULT_CLUSTER, routing_vocabulary
from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, TextNode
from engine.dsl.report import did_you_mean
from engine.model.records import NOBODY, SPEAKS_FOR
from engine.model.rules import Plan


def advise(examination: Examination, plan: Plan | None) -> None:
    """Add advice to the report of `examination`, and errors for names that `plan` does not have.

    Args:
        plan: the rules of the configuration, its overrides not applied; None when they cannot be loaded.
    """
    settings = examination.settings
    if settings is None:
        return
    clusters = {source.scope for source in settings.sources} if examination.whole_sources else None
    labels = {*(label for source in settings.sources for label in source.labels), *_override_labels(examination)}
    disabled = {id_ for id_, change in settings.overrides.items() if change.disabled}
    vocabulary = routing_vocabulary(plan, disabled, clusters, labels)
    advise_routes(examination.document.root.get("route"), vocabulary, examination.report)
    _advise_unused_receivers(examination)
    _advise_unused_intervals(examination)
    if clusters is not None:
        _advise_clusters(examination, clusters)
    if plan is not None:
        _check_overrides(examination, plan)
        _check_speakers(examination, plan)


def _override_labels(examination: Examination) -> Iterable[str]:
    overrides = examination.settings.overrides.values() if examination.settings is not None else ()
    return (label for change in overrides for label in change.labels)


def _entries(examination: Examination, section: str) -> list[tuple[str, MapNode]]:
    """Return (name, node) of the entries of a list whose entries have names."""
    node = examination.document.root.get(section)
    items = [item for item in node.items if isinstance(item, MapNode)] if isinstance(node, ListNode) else []
    return [(name.value, item) for item in items if isinstance(name := item.get("name"), TextNode)]


def _advise_unused_receivers(examination: Examination) -> None:
    settings = examination.settings
    entries = _entries(examination, "receivers")
    if settings is None or not examination.document.whole(("receivers",), settings.receivers):
        return
    used = {*receivers_of(settings.route), *settings.fallbacks.values()}
    used |= {receiver.name for receiver in settings.receivers if keeps_record(receiver)}
    for name, node in entries:
        if name not in used:
            help = "name it in a route, or leave it out"
            examination.report.add(Code.UNUSED_RECEIVER, node, f"nothing is ever sent to the receiver `{name}`", help)


def _advise_unused_intervals(examination: Examination) -> None:
    used = hours_of(examination.settings.route) if examination.settings is not None else frozenset()
    for name, node in _entries(examination, "time_intervals"):
        if name not in used:
            help = "name it in `mute_time_intervals` or `active_time_intervals` of a route"
            examination.report.add(Code.UNUSED_INTERVAL, node, f"no route uses the time interval `{name}`", help)


def _advise_clusters(examination: Examination, clusters: set[str]) -> None:
    section = examination.document.root.get("clusters")
    for name, _ in section.entries if isinstance(section, MapNode) else ():
        if name.value not in clusters:
            help = did_you_mean(name.value, clusters)
            if clusters == {DEFAULT_CLUSTER}:
                help = f"write `labels: {{cluster: {name.value}}}` in its sources"
            examination.report.add(Code.UNUSED_CLUSTER, name, f"no source belongs to the cluster `{name.value}`", help)


def _check_overrides(examination: Examination, plan: Plan) -> None:
    rules = plan.rules()
    names = {*rules, *(old for rule in rules.values() for old in rule.replaces)}
    section = examination.document.root.get("overrides")
    for name, _ in section.entries if isinstance(section, MapNode) else ():
        if name.value not in names:
            help = did_you_mean(name.value, names, "`tocsin rules list` has all ids")
            examination.report.add(Code.UNKNOWN_RULE, name, f"there is no rule `{name.value}` to override", help)


def _check_speakers(examination: Examination, plan: Plan) -> None:
    names = {component.name for component in plan.components}
    sources = examination.settings.sources if examination.settings is not None and examination.whole_sources else ()
    for index, source in enumerate(sources):
        grants = source.labels.get(SPEAKS_FOR, NOBODY)
        for number, grant in enumerate(grants.split(", ") if grants != NOBODY else ()):
            if (name := grant.partition(" ")[0]) not in names:
                place = examination.document.find(("sources", index, "may_speak_for", number))
                examination.report.add(
                    Code.BAD_LABEL, place, f"there is no component `{name}` to speak for", did_you_mean(name, names)
                )
