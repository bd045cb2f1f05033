"""Leaves out matches that do not count because of the state that their source was in."""

from __future__ import annotations

from collections.abc import Mapping

from engine.correlate.aggregate import Occurrence
from engine.correlate.entity_limit import GroupKey
from engine.correlate.entries import Part
from engine.correlate.facts import Facts
from engine.correlate.measure import Counted
from engine.model.rules import Rule


class StateFilter:
    """Filters parts by the states of their source.

    Attributes:
        rule_ids: the counted rules that name states; their matches must be kept apart by source.
    """

    def __init__(self, rule: Rule, counted: Mapping[str, Counted]) -> None:
        self._states = {rule_id: (*rule.not_during, *of_rule.not_during) for rule_id, of_rule in counted.items()}
        self.rule_ids = frozenset(rule_id for rule_id, states in self._states.items() if states)

    def applicable(self, key: GroupKey, parts: list[Part], facts: Facts) -> list[Part]:
        """Return the parts of a key that were printed outside of these states: a sum if its first or its last match was."""
        if key.rule_id not in self.rule_ids:
            return parts
        states, during = self._states[key.rule_id], facts.bindings.during
        times = [(part, (part.at,) if isinstance(part, Occurrence) else (part.first, part.last)) for part in parts]
        return [part for part, ends in times if not all(during(key.source_id, states, at) for at in ends)]
