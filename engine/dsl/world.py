"""What one rule may know of the others: which ids exist, which names are captured or labelled where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from engine.dsl.drafts import Draft
from engine.model.rules import Component, Format, Plan, Rule

# labels that layouts, wrappers and configurations give; components and formats add theirs
LABELS = (
    *("broker", "cluster", "connector", "container", "controller", "environment", "group", "host"),
    *("namespace", "node", "pod", "region", "source", "task", "topic", "worker"),
)
_EVENT_GROUPS = ("time", "level", "logger", "thread", "message")


class Outline(Struct, frozen=True):
    """What other rules may know of one: what its matches carry, what its entity is read from, which rules it is over.

    `members` are the rules whose captures it carries besides its own; `counts`: it is a correlation.
    """

    captures: Mapping[str, str]
    entity: Mapping[str, str]
    labels: Mapping[str, str]
    below: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    counts: bool = False


class World(Struct, frozen=True, dict=True):
    """Everything that was read, before rules refer to each other. `drafts`, by id, are still to be compiled; `compiled` are
    the outlines of rules that are."""

    drafts: Mapping[str, Draft]
    components: Mapping[str, Component]
    formats: Sequence[Format]
    labels: frozenset[str] = field(default_factory=frozenset)
    compiled: Mapping[str, Outline] = field(default_factory=dict)

    @cached_property
    def outlines(self) -> Mapping[str, Outline]:
        """What is known of every rule, by id."""
        return {**self.compiled, **{id_: _outline(draft) for id_, draft in self.drafts.items()}}

    def captures(self, id_: str) -> Mapping[str, str]:
        """Return name -> type of what matches or alerts of `id_` carry; a correlation carries what its members do."""
        return self._captures(id_, frozenset())

    def _captures(self, id_: str, above: frozenset[str]) -> Mapping[str, str]:
        found = self.outlines.get(id_)
        if found is None or id_ in above:
            return {}
        return _first_wins((found.captures, *(self._captures(member, above | {id_}) for member in found.members)))

    def visible(self, id_: str) -> Mapping[str, str]:
        """Return name -> type of what a template of `id_` may use: its own captures, those of the rules that it explains
        (an incident takes missing values from its symptoms) or continues, entity and labels."""
        related = [id_, *self._below(id_)]
        named = _first_wins(self.captures(other) for other in related)
        outlines = [found for other in related if (found := self.outlines.get(other)) is not None]
        entity = {name: "word" for found in outlines for name in found.entity}
        static = dict.fromkeys(outlines[0].labels, "word") if outlines else {}
        return {**dict.fromkeys(self.labels, "word"), **static, **entity, **named}

    def _below(self, id_: str) -> Iterable[str]:
        """Yield the rules that `id_` explains or continues, and theirs, each once."""
        seen, waiting = {id_}, [id_]
        while waiting:
            found = self.outlines.get(waiting.pop())
            for other in found.below if found else ():
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
                    yield other


def world(
    drafts: Mapping[str, Draft],
    components: Mapping[str, Component],
    formats: Sequence[Format],
    compiled: Mapping[str, Outline] | None = None,
) -> World:
    """Return the world of these files, with every label name they give."""
    return World(drafts, components, formats, frozenset(LABELS) | given_labels(components.values(), formats), compiled or {})


def outlines_of(plan: Plan) -> Mapping[str, Outline]:
    """Return the outlines of the rules of a plan, by id: what a correlation carries is known by then."""
    counting = {each.rule.id for each in plan.correlations}
    return {id_: _outline_of_rule(rule, id_ in counting) for id_, rule in plan.rules().items()}


def _outline_of_rule(rule: Rule, counts: bool) -> Outline:
    explained = (other for each in rule.explains for other in each.rules)
    return Outline(
        rule.captures, rule.entity, rule.labels, (*explained, *(each.rule for each in rule.continues)), counts=counts
    )


def _outline(draft: Draft) -> Outline:
    captures, labels = draft.detection.captures, draft.file.labels
    counts = draft.file.correlation is not None
    return Outline(captures, entity_of(draft), labels, _named_below(draft), members(draft), counts)


def given_labels(components: Iterable[Component], formats: Iterable[Format]) -> frozenset[str]:
    """Return the labels that these components and formats give to events; the others of LABELS a configuration may give."""
    labels = {component.label for component in components}
    for each in formats:
        labels |= {*each.labels, *_groups(each.header)} - {*_EVENT_GROUPS}
    return frozenset(labels)


def members(draft: Draft) -> tuple[str, ...]:
    """Return the rules whose matches a correlation works on (not `back` and `unless`, which only take back)."""
    given = draft.file.correlation
    if given is None:
        return ()
    return (*given.rules, *given.open, *((given.of,) if given.of else ()), *(given.sooner.rules if given.sooner else ()))


def entity_of(draft: Draft) -> Mapping[str, str]:
    """Return label -> capture or label of the rule's entity: `group-by` of a correlation, else `entity`, else the cluster."""
    if draft.file.correlation is not None:
        return draft.file.correlation.group_by
    return draft.file.entity or {"cluster": "cluster"}


def _named_below(draft: Draft) -> tuple[str, ...]:
    explained = tuple(rule for entry in draft.file.explains for rule in entry.rules)
    return (*explained, *(entry.rule for entry in draft.file.continues))


def _first_wins(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in maps:
        for name, type_ in each.items():
            found.setdefault(name, type_)
    return found


def _groups(header: str) -> Iterable[str]:
    return (piece.partition(">")[0] for piece in header.split("(?P<")[1:])
