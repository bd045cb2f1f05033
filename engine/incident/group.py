"""Findings in, incident revisions out: stores what correlation says and decides again for the scopes it touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from engine.incident.decide import decide
from engine.incident.families import families, relatives
from engine.model.incidents import Blind, Evidence, Finding, Incident, Roster, Verdict
from engine.model.rules import Plan
from engine.ports import Ledger

CHUNK = 1000  # findings between two decisions: bounds memory, and the cost of deciding in a storm


def group(findings: Iterable[Finding], plan: Plan, ledger: Ledger) -> Iterator[Incident]:
    """Yield new revisions of incidents; the last one of an id is its state when the findings end.

    Decided again is what the rules that have said something are linked with; all of a scope when somebody else is known to
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
        for scope, rules in touched.by(chunk):
            alerts, incidents = ledger.alerts(scope, rules), ledger.incidents(scope, rules)
            revisions = decide(alerts, incidents, plan, ledger.roster(scope), ledger.evidence)
            ledger.put_incidents(revisions)
            yield from revisions


class _Touched:
    """What the chunks so far have touched: evidence may come in a later chunk than the verdict that it proves."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger, self._families = plan, ledger, families(plan)
        self._rules: dict[str, set[str]] = {}
        self._whole: set[str] = set()

    def by(self, chunk: Sequence[Finding]) -> Iterator[tuple[str, frozenset[str] | None]]:
        """Yield the scopes to decide after `chunk`, and of which rules; None: of all."""
        verdicts = [f for f in chunk if isinstance(f, Verdict)]
        rosters = {f.scope for f in chunk if isinstance(f, Roster)}
        for verdict in verdicts:
            self._rules.setdefault(verdict.key[0], set()).add(verdict.key[1])
        for scope in sorted({verdict.key[0] for verdict in verdicts} | rosters):
            if scope in rosters or self._ledger.judged_by(scope) != self._plan.hash:
                self._whole.add(scope)
                self._ledger.put_judged(scope, self._plan.hash)
            yield scope, None if scope in self._whole else relatives(self._rules[scope], self._families)
