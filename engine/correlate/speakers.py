"""Speakers: whose lines count where a rule excuses or resolves the alert of another (docs/security.md).

Matches of a rule with a `speaker` count only if a source of one of these components printed them, and of the member that the
alert names, if it names one. A source that prints the trouble itself may always say that it is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from engine.correlate.aggregate import Occurrence
from engine.correlate.entities import Entity
from engine.correlate.entries import Part
from engine.correlate.facts import Facts
from engine.identity_cache import cached_by_identity
from engine.model.rules import SEVERITIES, Plan, Rule

# by rule, the components whose sources may print its matches; a rule that any source may print is not in it
Speakers = Mapping[str, Sequence[str]]
ANYBODY: Speakers = {}


@cached_by_identity
def speakers_of(plan: Plan) -> Speakers:
    """Return the speakers of the rules of `plan`."""
    return {signature.rule.id: signature.rule.speaker for signature in plan.signatures if signature.rule.speaker}


class Voices(Struct, frozen=True):
    """The speakers that matter for one rule: its own, if it only excuses others, and those of the rules that end it."""

    speakers: Speakers = ANYBODY

    @classmethod
    def of(cls, rule: Rule, speakers: Speakers) -> Voices:
        """Return the voices of `rule`."""
        excuses = rule.severity == SEVERITIES[0] and bool(rule.explains)
        named = (*rule.clear.signs, *((rule.id,) if excuses else ()))
        return cls({rule_id: speakers[rule_id] for rule_id in named if rule_id in speakers})

    def asked(self, rule_id: str) -> bool:
        """Return whether it matters who prints a match of `rule_id`."""
        return rule_id in self.speakers

    def may_speak(self, rule_id: str, source_id: str, entity: Entity, facts: Facts) -> bool:
        """Return whether a match of `rule_id` about `entity` counts when `source_id` printed it; "" counts always."""
        if not source_id or rule_id not in self.speakers:
            return True
        members, bindings = dict(entity), facts.bindings
        return any(bindings.may_speak(source_id, name, members.get(bindings.label_of(name))) for name in self.speakers[rule_id])

    def vouched(self, parts: Iterable[Part], source_id: str, facts: Facts) -> list[Part]:
        """Return `parts` without those whose stamps the source itself contradicts."""
        return [part for part in parts if not source_id or facts.clocks.vouches(source_id, _last(part))]


def printers(parts: Iterable[Part]) -> Collection[str]:
    """Return the sources of `parts`."""
    return {name for part in parts for name in ((part.source_id,) if isinstance(part, Occurrence) else part.sources)}


def _last(part: Part) -> datetime:
    return part.at if isinstance(part, Occurrence) else part.last
