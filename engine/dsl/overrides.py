"""Change a shipped rule without copying it: disable it, weigh it differently, give it labels to route by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.errors import UsageError
from engine.model.rules import SEVERITIES, Plan, Rule


@dataclass(frozen=True, slots=True)
class Override:
    """What is different about one rule. `severity` empty: as shipped; `labels` are added to the rule's own."""

    disabled: bool = False
    severity: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def apply(plan: Plan, overrides: Mapping[str, Override]) -> Plan:
    """Return `plan` changed by `overrides` (by rule id). Raises UsageError for an unknown rule or severity.

    A disabled rule never matches or fires; what names it elsewhere simply never happens.
    """
    unknown = sorted(overrides.keys() - plan.rules().keys())
    if unknown:
        raise UsageError(f"overrides name rules that do not exist: {', '.join(unknown)}")
    wrong = sorted(id_ for id_, change in overrides.items() if change.severity not in ("", *SEVERITIES))
    if wrong:
        raise UsageError(f"overrides give no known severity for: {', '.join(wrong)} (one of {', '.join(SEVERITIES)})")
    if not overrides:
        return plan
    return replace(
        plan,
        signatures=tuple(replace(s, rule=_changed(s.rule, overrides)) for s in plan.signatures if _kept(s.rule, overrides)),
        correlations=tuple(replace(c, rule=_changed(c.rule, overrides)) for c in plan.correlations if _kept(c.rule, overrides)),
        hash=f"{plan.hash}+{_digest(overrides)}",
    )


def _kept(rule: Rule, overrides: Mapping[str, Override]) -> bool:
    return rule.id not in overrides or not overrides[rule.id].disabled


def _changed(rule: Rule, overrides: Mapping[str, Override]) -> Rule:
    change = overrides.get(rule.id)
    if change is None:
        return rule
    return replace(rule, severity=change.severity or rule.severity, labels={**rule.labels, **change.labels})


def _digest(overrides: Mapping[str, Override]) -> str:
    from hashlib import sha256  # noqa: PLC0415  (needed only when a rule is overridden)

    said = [(id_, c.disabled, c.severity, sorted(c.labels.items())) for id_, c in sorted(overrides.items())]
    return sha256(repr(said).encode()).hexdigest()[:16]
