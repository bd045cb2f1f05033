"""The view that a rule has of the others: the ids that exist, and the captures and labels of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from engine.dsl.drafts import Draft
from engine.model.asked_items import counted_by
from engine.model.rules import ABSENCE_ITEMS, Component, Correlation, Format, Item, Plan, Rule

# labels that formats, wrappers and configurations set; components and formats add their own
LABELS = (
    *("broker", "cluster", "connector", "container", "controller", "environment", "group", "host"),
    *("namespace", "node", "pod", "region", "source", "task", "topic", "worker"),
)
_EVENT_GROUPS = ("time", "level", "logger", "thread", "message")


class Outline(Struct, frozen=True):
    """The part of a rule that others refer to: its captures, detection items, entity keys and labels, and the rules below it.

    `below`: the rules that it explains or continues; `members`: the rules whose captures a correlation carries besides its
    own; `counts`: it is a correlation.
    """

    captures: Mapping[str, str]
    entity: Mapping[str, str]
    labels: Mapping[str, str]
    below: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    counts: bool = False
    items: frozenset[str] = frozenset()


class SymbolTable(Struct, frozen=True, dict=True):
    """Everything that rules may refer to. `drafts`, by id, are not compiled yet; `compiled` are the outlines of rules, by id,
    that are."""

    drafts: Mapping[str, Draft]
    components: Mapping[str, Component]
    formats: Sequence[Format]
    labels: frozenset[str] = field(default_factory=frozenset)
    compiled: Mapping[str, Outline] = field(default_factory=dict)

    @cached_property
    def outlines(self) -> Mapping[str, Outline]:
        """The outline of every rule, by id."""
        return {**self.compiled, **{id_: _outline(draft) for id_, draft in self.drafts.items()}}

    def captures(self, id_: str) -> Mapping[str, str]:
        """Return name -> type of the captures of `id_`; a correlation also has those of its members."""
        return self._captures(id_, frozenset())

    def _captures(self, id_: str, above: frozenset[str]) -> Mapping[str, str]:
        outline = self.outlines.get(id_)
        if outline is None or id_ in above:
            return {}
        return _first_wins((outline.captures, *(self._captures(member, above | {id_}) for member in outline.members)))

    def items(self, id_: str) -> frozenset[str]:
        """Return the detection items of `id_`; of a correlation those of its members."""
        return self._items(id_, frozenset())

    def _items(self, id_: str, above: frozenset[str]) -> frozenset[str]:
        outline = self.outlines.get(id_)
        if outline is None or id_ in above:
            return frozenset()
        return outline.items.union(*(self._items(member, above | {id_}) for member in outline.members))

    def visible(self, id_: str) -> Mapping[str, str]:
        """Return name -> type of the values that a template of `id_` may use: its own captures, those of the rules that it
        explains (an incident takes missing values from its symptoms) or continues, entity keys and labels."""
        related = [id_, *self._below(id_)]
        named = _first_wins(self.captures(other) for other in related)
        outlines = [outline for other in related if (outline := self.outlines.get(other)) is not None]
        entity = {name: "word" for outline in outlines for name in outline.entity}
        static = dict.fromkeys(outlines[0].labels, "word") if outlines else {}
        return {**dict.fromkeys(self.labels, "word"), **static, **entity, **named}

    def _below(self, id_: str) -> Iterable[str]:
        """Yield the rules that `id_` explains or continues, transitively, each once."""
        visited, pending = {id_}, [id_]
        while pending:
            outline = self.outlines.get(pending.pop())
            for other in outline.below if outline else ():
                if other not in visited:
                    visited.add(other)
                    pending.append(other)
                    yield other


def symbol_table(
    drafts: Mapping[str, Draft],
    components: Mapping[str, Component],
    formats: Sequence[Format],
    compiled: Mapping[str, Outline] | None = None,
) -> SymbolTable:
    """Return the symbols of these files, with every label that they set."""
    return SymbolTable(
        drafts, components, formats, frozenset(LABELS) | given_labels(components.values(), formats), compiled or {}
    )


def outlines_of(plan: Plan) -> Mapping[str, Outline]:
    """Return the outlines of a plan's rules, by id; `captures` of a compiled correlation include those of its members."""
    return {
        **{signature.rule.id: _outline_of_rule(signature.rule, signature.items) for signature in plan.signatures},
        **{c.rule.id: _outline_of_correlation(c) for c in plan.correlations},
    }


def _outline_of_correlation(correlation: Correlation) -> Outline:
    items = ABSENCE_ITEMS if correlation.absence is not None else frozenset[str]()
    return replace(_outline_of_rule(correlation.rule), members=counted_by(correlation), counts=True, items=items)


def _outline_of_rule(rule: Rule, items: Iterable[Item] = ()) -> Outline:
    explained = (other for entry in rule.explains for other in entry.rules)
    below = (*explained, *(entry.rule for entry in rule.continues))
    return Outline(rule.captures, rule.entity, rule.labels, below, items=frozenset(item.name for item in items))


def _outline(draft: Draft) -> Outline:
    captures, labels = draft.detection.captures, draft.file.labels
    counts = draft.file.correlation is not None
    is_absence = draft.file.correlation is not None and draft.file.correlation.type == "absence"
    items = ABSENCE_ITEMS if is_absence else frozenset(item.name for item in draft.detection.items)
    return Outline(captures, entity_of(draft), labels, _rules_below(draft), members(draft), counts, items)


def given_labels(components: Iterable[Component], formats: Iterable[Format]) -> frozenset[str]:
    """Return the labels that these components and formats set on events; other LABELS come from wrappers or a configuration."""
    labels = {component.label for component in components}
    for format_ in formats:
        labels |= {*format_.labels, *_groups(format_.header)} - {*_EVENT_GROUPS}
    return frozenset(labels)


def members(draft: Draft) -> tuple[str, ...]:
    """Return the rules whose matches a correlation counts, without those of `back` and `unless`, which only withdraw."""
    correlation = draft.file.correlation
    if correlation is None:
        return ()
    sooner = correlation.sooner.rules if correlation.sooner else ()
    return (*correlation.rules, *correlation.open, *((correlation.of,) if correlation.of else ()), *sooner)


def entity_of(draft: Draft) -> Mapping[str, str]:
    """Return label -> capture or label of the rule's entity: `group-by` of a correlation, else `entity`, else the cluster."""
    if draft.file.correlation is not None:
        return draft.file.correlation.group_by
    return draft.file.entity or {"cluster": "cluster"}


def _rules_below(draft: Draft) -> tuple[str, ...]:
    explained = tuple(rule for entry in draft.file.explains for rule in entry.rules)
    return (*explained, *(entry.rule for entry in draft.file.continues))


def _first_wins(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for mapping in maps:
        for name, type_ in mapping.items():
            merged.setdefault(name, type_)
    return merged


def _groups(header: str) -> Iterable[str]:
    return (piece.partition(">")[0] for piece in header.split("(?P<")[1:])
