"""Voices: whose word counts where a rule excuses or resolves what another one found (docs/security.md).

A rule with a `speaker` vouches only by the mouth of one of those components, and of the member that it is about, where its
alert names one. Whoever prints the trouble itself may always say that it is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from engine.correlate.aggregate import Occurrence
from engine.correlate.entities import Entity
from engine.correlate.entries import Part
from engine.correlate.facts import Facts
from engine.identity_cache import remembered
from engine.model.rules import SEVERITIES, Plan, Rule

Speakers = Mapping[
    str, Sequence[str]
]  # by rule, the components that it takes the word of; a rule that takes anybody's is not in it
ANYBODY: Speakers = {}


@remembered
def speakers_of(plan: Plan) -> Speakers:
    """Return the speakers of the rules of `plan`."""
    return {each.rule.id: each.rule.speaker for each in plan.signatures if each.rule.speaker}


class Voices(Struct, frozen=True):
    """Whose word counts for one rule: `speakers` of the rule itself, where it only excuses others, and of those that end it."""

    speakers: Speakers = ANYBODY

    @classmethod
    def of(cls, rule: Rule, speakers: Speakers) -> Voices:
        """Return the voices of `rule`."""
        excuses = rule.severity == SEVERITIES[0] and bool(rule.explains)
        named = (*rule.clear.rules, *((rule.id,) if excuses else ()))
        return cls({rule_id: speakers[rule_id] for rule_id in named if rule_id in speakers})

    def asked(self, rule_id: str) -> bool:
        """Return whether it matters who prints a match of `rule_id`."""
        return rule_id in self.speakers

    def may_speak(self, rule_id: str, source_id: str, entity: Entity, facts: Facts) -> bool:
        """Return whether `source_id` may say what `rule_id` says of `entity`; no source is one of state stored without."""
        if not source_id or rule_id not in self.speakers:
            return True
        members, bindings = dict(entity), facts.bindings
        return any(bindings.may_speak(source_id, name, members.get(bindings.label_of(name))) for name in self.speakers[rule_id])

    def vouched(self, parts: Iterable[Part], source_id: str, facts: Facts) -> list[Part]:
        """Return `parts` without those whose stamps their own source contradicts."""
        return [part for part in parts if not source_id or facts.clocks.vouches(source_id, _last(part))]


def printers(parts: Iterable[Part]) -> Collection[str]:
    """Return the sources that `parts` are from."""
    return {name for part in parts for name in ((part.source_id,) if isinstance(part, Occurrence) else part.sources)}


def _last(part: Part) -> datetime:
    return part.at if isinstance(part, Occurrence) else part.last
