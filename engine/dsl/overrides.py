"""Change a shipped rule without copying it: disable it, weigh it differently, except what is known, label it to route by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from engine.dsl.units import in_units
from engine.errors import UsageError
from engine.model.expressions import Expression, names
from engine.model.rules import SEVERITIES, Item, Plan, Rule, Signature


class Override(Struct, frozen=True):
    """What is different about one rule. `severity` empty: as shipped; `labels` are added to the rule's own.

    Events for which `exceptions` holds, or `unless` is true of the rule's captures, are no matches of it.
    """

    disabled: bool = False
    severity: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    exceptions: Item | None = None
    unless: Expression | None = None

    @property
    def excepts(self) -> bool:
        """Whether it leaves events out."""
        return self.exceptions is not None or self.unless is not None


def apply(plan: Plan, overrides: Mapping[str, Override]) -> Plan:
    """Return `plan` changed by `overrides` (by rule id, or an id that a rule replaces). Raises UsageError if one does not fit.

    A disabled rule never matches or fires; what names it elsewhere simply never happens.
    """
    if not overrides:
        return plan
    current = {old: rule.id for rule in plan.rules().values() for old in rule.replaces}
    meant = {current.get(id_, id_): change for id_, change in overrides.items()}
    for problem in _problems(plan, meant):
        raise UsageError(f"overrides {problem}")
    return replace(
        plan,
        signatures=tuple(_changed_signature(s, meant) for s in plan.signatures if _kept(s.rule, meant)),
        correlations=tuple(replace(c, rule=_changed(c.rule, meant)) for c in plan.correlations if _kept(c.rule, meant)),
        hash=f"{plan.hash}+{_digest(meant)}",
    )


def _problems(plan: Plan, overrides: Mapping[str, Override]) -> Iterator[str]:
    rules = plan.rules()
    unknown = sorted(overrides.keys() - rules.keys())
    if unknown:
        yield f"name rules that do not exist: {', '.join(unknown)}"
    wrong = sorted(id_ for id_, change in overrides.items() if change.severity not in ("", *SEVERITIES))
    if wrong:
        yield f"give no known severity for: {', '.join(wrong)} (one of {', '.join(SEVERITIES)})"
    counting = {each.rule.id for each in plan.correlations}
    for id_, change in sorted(overrides.items()):
        if change.excepts and id_ in counting:
            yield f"except lines from {id_}, which counts other rules; except them from those"
        missing = names(change.unless) - rules[id_].captures.keys() if change.unless is not None and id_ in rules else ()
        if missing:
            yield f"look at what {id_} does not capture: {', '.join(sorted(missing))}"


def _changed_signature(signature: Signature, overrides: Mapping[str, Override]) -> Signature:
    change = overrides.get(signature.rule.id)
    if change is None:
        return signature
    unless = in_units(change.unless, signature.rule.captures) if change.unless is not None else None
    return replace(signature, rule=_changed(signature.rule, overrides), exceptions=change.exceptions, unless=unless)


def _kept(rule: Rule, overrides: Mapping[str, Override]) -> bool:
    return rule.id not in overrides or not overrides[rule.id].disabled


def _changed(rule: Rule, overrides: Mapping[str, Override]) -> Rule:
    change = overrides.get(rule.id)
    if change is None:
        return rule
    return replace(rule, severity=change.severity or rule.severity, labels={**rule.labels, **change.labels})


def _digest(overrides: Mapping[str, Override]) -> str:
    from hashlib import sha256  # noqa: PLC0415  (needed only when a rule is overridden)

    said = [
        (id_, c.disabled, c.severity, sorted(c.labels.items()), c.exceptions, c.unless) for id_, c in sorted(overrides.items())
    ]
    return sha256(repr(said).encode()).hexdigest()[:16]
