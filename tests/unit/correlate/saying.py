"""What correlation finally says of hand-made items: its verdicts put together as a ledger would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.correlate import Correlator, StateCache, correlate
from engine.model.incidents import Alert, AlertKey, Finding, Verdict
from engine.model.rules import Plan

Said = dict[AlertKey, tuple[Alert, ...]]


def together(findings: Iterable[Finding]) -> Said:
    """Return the alerts of every key after `findings`; keys that have none are left out."""
    said: Said = {}
    for finding in findings:
        if isinstance(finding, Verdict):
            said[finding.key] = finding.over(said.get(finding.key, ()))
    return {key: alerts for key, alerts in said.items() if alerts}


def alerts(items: Iterable[object], plan: Plan, rule: str) -> list[Alert]:
    """Return the final alerts of `rule`, by key, then time."""
    said = together(correlate(items, plan))  # type: ignore[arg-type]
    return [alert for key in sorted(said) if key[1] == rule for alert in said[key]]


def in_batches(batches: Iterable[Sequence[object]], plan: Plan, restart: bool) -> Said:
    """Return what is finally said when each batch is flushed, by one correlator or by a new one over the same state.

    Of new ones two in three are in a process in which the logics of the one before may rest.
    """
    state: dict[str, str] = {}
    resting = StateCache()
    correlator = Correlator(plan, "default", state)
    findings: list[Finding] = []
    for number, batch in enumerate(batches):
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        findings += correlator.flush()
        if restart:
            correlator = Correlator(plan, "default", state, resting if number % 3 else None)
    return together(findings)
