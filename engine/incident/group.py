"""Findings in, incident revisions out: stores what correlation says and decides again for the scopes it touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from engine.incident.decide import decide
from engine.incident.families import beginning, families, reach, relatives
from engine.model.incidents import WHOLE, Blind, Evidence, Finding, Incident, Part, Roster, Verdict
from engine.model.rules import Plan
from engine.ports import Ledger

CHUNK = 1000  # findings between two decisions: bounds memory, and the cost of deciding in a storm


def group(findings: Iterable[Finding], plan: Plan, ledger: Ledger) -> Iterator[Incident]:
    """Yield new revisions of incidents; the last one of an id is its state when the findings end.

    Decided again is what may be linked with what was said, by rule and by time; all of a scope when somebody else is known to
    belong to it, or when it was last decided by other rules.
    """
    waiting, touched = iter(findings), _Touched(plan, ledger)
    while chunk := list(islice(waiting, CHUNK)):
        ledger.put_findings(
            [f for f in chunk if isinstance(f, Verdict)],
            [f for f in chunk if isinstance(f, Evidence)],
            [f for f in chunk if isinstance(f, Roster)],
            [f for f in chunk if isinstance(f, Blind)],
        )
        for scope, part in touched.by(chunk):
            alerts, incidents = ledger.alerts(scope, part), ledger.incidents(scope, part)
            revisions = decide(alerts, incidents, plan, ledger.roster(scope), ledger.evidence)
            ledger.put_incidents(revisions)
            yield from revisions


class _Touched:
    """What the chunks so far have touched: evidence may come in a later chunk than the verdict that it proves."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger, self._families = plan, ledger, families(plan)
        self._verdicts: dict[str, dict[str, datetime | None]] = {}  # by scope and rule: since when it may have changed
        self._whole: set[str] = set()

    def by(self, chunk: Sequence[Finding]) -> Iterator[tuple[str, Part]]:
        """Yield the scopes to decide after `chunk`, and which part of each."""
        verdicts = [f for f in chunk if isinstance(f, Verdict)]
        rosters = {f.scope for f in chunk if isinstance(f, Roster)}
        for verdict in verdicts:
            self._note(verdict)
        for scope in sorted({verdict.key[0] for verdict in verdicts} | rosters):
            if scope in rosters or self._ledger.judged_by(scope) != self._plan.hash:
                self._whole.add(scope)
                self._ledger.put_judged(scope, self._plan.hash)
            yield scope, WHOLE if scope in self._whole else self._part(scope, self._verdicts[scope])

    def _note(self, verdict: Verdict) -> None:
        scope, rule, _ = verdict.key
        known, since = self._verdicts.setdefault(scope, {}), _changed_since(verdict)
        before = known.get(rule, since)
        known[rule] = None if since is None or before is None else min(since, before)

    def _part(self, scope: str, changed: Mapping[str, datetime | None]) -> Part:
        rules, times = relatives(changed, self._families), [since for since in changed.values() if since is not None]
        spans = self._ledger.spans(scope, rules) if len(times) == len(changed) else None
        if spans is None:
            return Part(rules)
        linked = [rule for name, rule in self._plan.rules().items() if name in rules]
        return Part(rules, beginning(spans, min(times), reach(linked)))


def _changed_since(verdict: Verdict) -> datetime | None:
    """Return since when a verdict may differ from the one before; None: nobody knows, or its lines bear no time."""
    if verdict.final_before is None or any(not alert.dated for alert in verdict.alerts):
        return None
    return min((verdict.final_before, *(alert.starts_at for alert in verdict.alerts)))
