"""Leaves out matches that a rule is not for: those of sources that run another version of the component."""

from __future__ import annotations

from collections.abc import Mapping

from engine.correlate.aggregate import Occurrence
from engine.correlate.entity_limit import GroupKey
from engine.correlate.entries import Part
from engine.correlate.facts import Facts, RuleNotEvaluated
from engine.correlate.measure import Counted
from engine.correlate.versions import VersionBounds, within, written
from engine.model.rules import Rule


class VersionFilter:
    """Filters parts by the version that their source runs.

    Attributes:
        rule_ids: the counted rules that have bounds; their matches must be kept apart by source.
    """

    def __init__(self, rule: Rule, counted: Mapping[str, Counted]) -> None:
        self._rule, self._counted = rule, counted
        self.rule_ids = frozenset(id_ for id_, of_rule in counted.items() if of_rule.versions or rule.versions)
        self._outside: dict[GroupKey, str] = {}  # keys with parts that were left out, and the version of these

    def applicable(self, key: GroupKey, parts: list[Part], facts: Facts) -> list[Part]:
        """Return the parts of a key to which the rule applies: all when the version of the source is unknown."""
        if key.rule_id not in self.rule_ids or not facts.bindings.knows_version(key.source_id):
            return parts
        applicable = [part for part in parts if not self._is_outside(key, part, facts)]
        if len(applicable) == len(parts):
            self.forget(key)
        return applicable

    def forget(self, key: GroupKey) -> None:
        """Drop the cached result of a key."""
        self._outside.pop(key, None)

    def not_evaluated(self) -> list[RuleNotEvaluated]:
        """Return the rules of parts that were left out, by key, with their versions and the version of the source."""
        return [
            (key.rule_id, f"is for {written(self._bounds(key.rule_id))}; {key.source_id} runs {version}")
            for key, version in self._outside.items()
        ]

    def _is_outside(self, key: GroupKey, part: Part, facts: Facts) -> bool:
        at = part.at if isinstance(part, Occurrence) else part.first
        counted = self._counted[key.rule_id]
        for component, bounds in ((self._rule.component, self._rule.versions), (counted.component, counted.versions)):
            version = facts.bindings.version(key.source_id, component, at) if bounds else None
            if version is not None and not within(version, bounds):
                self._outside[key] = version
                return True
        return False

    def _bounds(self, rule_id: str) -> VersionBounds:
        return self._rule.versions or self._counted[rule_id].versions
