"""Leaving out what a rule is not for: matches of sources that run another version of the component."""

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
    """Keeps the parts whose source runs a version that `rule` and the counted signature are for, and remembers the others.

    `rule_ids` are the counted rules that have bounds: their matches must be kept apart by source.
    """

    def __init__(self, rule: Rule, counted: Mapping[str, Counted]) -> None:
        self._rule, self._counted = rule, counted
        self.rule_ids = frozenset(id_ for id_, each in counted.items() if each.versions or rule.versions)
        self._outside: dict[GroupKey, str] = {}  # the version that was found there

    def applicable(self, place: GroupKey, parts: list[Part], facts: Facts) -> list[Part]:
        """Return the parts kept at `place` that the rule is for: all where nothing is known of the source's version."""
        if place.rule_id not in self.rule_ids or not facts.bindings.knows_version(place.source_id):
            return parts
        kept = [part for part in parts if not self._is_outside(place, part, facts)]
        if len(kept) == len(parts):
            self.forget(place)
        return kept

    def forget(self, place: GroupKey) -> None:
        """Remember nothing of `place`."""
        self._outside.pop(place, None)

    def not_evaluated(self) -> list[RuleNotEvaluated]:
        """Return the rules that were left out, one entry a place, with the version they are for and the one found."""
        return [
            (place.rule_id, f"is for {written(self._bounds(place.rule_id))}; {place.source_id} runs {version}")
            for place, version in self._outside.items()
        ]

    def _is_outside(self, place: GroupKey, part: Part, facts: Facts) -> bool:
        at = part.at if isinstance(part, Occurrence) else part.first
        counted = self._counted[place.rule_id]
        for component, bounds in ((self._rule.component, self._rule.versions), (counted.component, counted.versions)):
            version = facts.bindings.version(place.source_id, component, at) if bounds else None
            if version is not None and not within(version, bounds):
                self._outside[place] = version
                return True
        return False

    def _bounds(self, rule_id: str) -> VersionBounds:
        return self._rule.versions or self._counted[rule_id].versions
