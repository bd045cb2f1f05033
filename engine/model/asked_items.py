"""Which items of a signature the expressions of its alerts ask for: only their truth is carried by matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.model.expressions import Expression, items_in
from engine.model.rules import Correlation, Plan, Rule


def asked_items(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Return the items whose truth the matches of each signature carry, sorted, by rule id; without empty ones.

    They are those that a `when` of the signature's rule names, or one of a correlation over the signature.
    """
    asked = {id_: _items_of(rule) for id_, rule in plan.rules().items()}
    for correlation in plan.correlations:
        for id_ in _below(correlation.rule.id, {c.rule.id: c for c in plan.correlations}):
            asked[id_] = asked.get(id_, frozenset()) | _items_of(correlation.rule)
    named = ((s.rule.id, sorted({item.name for item in s.items} & asked[s.rule.id])) for s in plan.signatures)
    return {id_: tuple(names) for id_, names in named if names}


def conditions(rule: Rule) -> Iterator[Expression]:
    """Yield every `when` of a rule: those of escalations, of `told_as`, of cases and of steps."""
    yield from (escalation.when for escalation in rule.escalate)
    yield from (told_as.when for told_as in rule.told_as)
    yield from (case.when for case in rule.runbook.cases)
    yield from (step.when for step in rule.runbook.fix if step.when is not None)


def counted_by(correlation: Correlation) -> tuple[str, ...]:
    """Return the rules whose captures and items a correlation has: those that it counts, expects to go on, or is warned by."""
    absence = correlation.absence
    if absence is None:
        return correlation.rules
    return (*correlation.rules, absence.of, *(absence.sooner.rules if absence.sooner else ()))


def _items_of(rule: Rule) -> frozenset[str]:
    return frozenset().union(*map(items_in, conditions(rule)))


def _below(id_: str, correlations: Mapping[str, Correlation]) -> Iterable[str]:
    """Return the rules below a correlation, through correlations of correlations, each once."""
    below: dict[str, None] = {}
    pending = [id_]
    while pending:
        correlation = correlations.get(pending.pop())
        members = counted_by(correlation) if correlation is not None else ()
        pending += [member for member in members if member not in below]
        below |= dict.fromkeys(members)
    return below
