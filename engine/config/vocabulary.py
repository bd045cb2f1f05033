"""The labels that incidents can have, and the values of those that are known beforehand: what matchers can match."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from engine.config.schema import SELECTING
from engine.dsl.symbols import LABELS
from engine.model.rules import SEVERITIES, Plan

DEFAULT_CLUSTER = "default"


class RoutingVocabulary(Struct, frozen=True):
    """What matchers of an installation can match.

    Attributes:
        labels: every label that an incident can have.
        values: label -> all values that it can have, with the empty text if it may be missing; only for labels for which they
            are known.
        renamed: former id of a rule -> its id.
    """

    labels: frozenset[str]
    values: Mapping[str, frozenset[str]]
    renamed: Mapping[str, str]


def routing_vocabulary(
    plan: Plan | None, disabled: Collection[str], clusters: Iterable[str] | None, source_labels: Iterable[str]
) -> RoutingVocabulary | None:
    """Return the vocabulary of an installation; None without a `plan`, as most labels come from rules.

    Args:
        disabled: ids, present or former, of rules that are not used.
        clusters: those of the sources; None when not all sources are known.
        source_labels: the names of the labels that sources set.
    """
    if plan is None:
        return None
    rules = [rule for rule in plan.rules().values() if not {rule.id, *rule.replaces}.intersection(disabled)]
    open_labels = {
        *LABELS,
        *SELECTING.values(),
        *source_labels,
        *(component.label for component in plan.components),
        *(label for rule in rules for label in rule.entity),
        *(label for format in plan.formats for label in format.labels),
    }
    constants: dict[str, set[str]] = {}
    for rule in rules:
        for label, value in rule.labels.items():
            constants.setdefault(label, {""}).add(value)
    values = {
        **{label: frozenset(words) for label, words in constants.items() if label not in open_labels},
        "rule": frozenset(rule.id for rule in rules),
        "severity": frozenset(SEVERITIES),
        "component": frozenset(rule.component for rule in rules),
    }
    if clusters is not None:
        values["cluster"] = frozenset(clusters) or frozenset((DEFAULT_CLUSTER,))
    renamed = {old: rule.id for rule in rules for old in rule.replaces}
    return RoutingVocabulary(frozenset((*open_labels, *constants, *values)), values, renamed)
