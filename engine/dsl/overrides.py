"""Change a shipped rule without copying it: disable it, set its severity, except events, add labels to route by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from engine.dsl.units import in_units
from engine.errors import UsageError
from engine.model.expressions import Expression, names
from engine.model.rules import SEVERITIES, Item, Plan, Rule, Signature


class Override(Struct, frozen=True):
    """The changes to one rule. An empty `severity` leaves it as shipped; `labels` are added to the rule's own.

    An event is not a match when `exceptions` holds for it, or `unless` is true of the captures.
    """

    disabled: bool = False
    severity: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    exceptions: Item | None = None
    unless: Expression | None = None

    @property
    def excepts(self) -> bool:
        """Whether the override leaves events out."""
        return self.exceptions is not None or self.unless is not None


def apply(plan: Plan, overrides: Mapping[str, Override]) -> Plan:
    """Return `plan` changed by `overrides`, which are keyed by a rule's id or by an id that it replaces.

    A disabled rule never matches or fires; references to it stay and have no effect. Raises UsageError for an override of an
    unknown rule, with an unknown severity, or with exceptions that the rule cannot have.
    """
    if not overrides:
        return plan
    current = {old: rule.id for rule in plan.rules().values() for old in rule.replaces}
    by_id = {current.get(id_, id_): change for id_, change in overrides.items()}
    for problem in _problems(plan, by_id):
        raise UsageError(f"overrides {problem}")
    return replace(
        plan,
        signatures=tuple(_changed_signature(s, by_id) for s in plan.signatures if _is_enabled(s.rule, by_id)),
        correlations=tuple(replace(c, rule=_changed(c.rule, by_id)) for c in plan.correlations if _is_enabled(c.rule, by_id)),
        hash=f"{plan.hash}+{_digest(by_id)}",
    )


def _problems(plan: Plan, overrides: Mapping[str, Override]) -> Iterator[str]:
    rules = plan.rules()
    unknown = sorted(overrides.keys() - rules.keys())
    if unknown:
        yield f"name rules that do not exist: {', '.join(unknown)}"
    without_severity = sorted(id_ for id_, change in overrides.items() if change.severity not in ("", *SEVERITIES))
    if without_severity:
        yield f"give no known severity for: {', '.join(without_severity)} (one of {', '.join(SEVERITIES)})"
    counting = {correlation.rule.id for correlation in plan.correlations}
    for id_, change in sorted(overrides.items()):
        if change.excepts and id_ in counting:
            yield f"except events from {id_}, which is a correlation; except them from the rules that it counts"
        missing = names(change.unless) - rules[id_].captures.keys() if change.unless is not None and id_ in rules else ()
        if missing:
            yield f"use names that {id_} does not capture: {', '.join(sorted(missing))}"


def _changed_signature(signature: Signature, overrides: Mapping[str, Override]) -> Signature:
    change = overrides.get(signature.rule.id)
    if change is None:
        return signature
    unless = in_units(change.unless, signature.rule.captures) if change.unless is not None else None
    return replace(signature, rule=_changed(signature.rule, overrides), exceptions=change.exceptions, unless=unless)


def _is_enabled(rule: Rule, overrides: Mapping[str, Override]) -> bool:
    return rule.id not in overrides or not overrides[rule.id].disabled


def _changed(rule: Rule, overrides: Mapping[str, Override]) -> Rule:
    change = overrides.get(rule.id)
    if change is None:
        return rule
    return replace(rule, severity=change.severity or rule.severity, labels={**rule.labels, **change.labels})


def _digest(overrides: Mapping[str, Override]) -> str:
    from hashlib import sha256  # noqa: PLC0415  (needed only when a rule is overridden)

    fields = [
        (id_, c.disabled, c.severity, sorted(c.labels.items()), c.exceptions, c.unless) for id_, c in sorted(overrides.items())
    ]
    return sha256(repr(fields).encode()).hexdigest()[:16]
