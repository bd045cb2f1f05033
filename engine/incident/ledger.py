"""The ledger in memory: alerts and incidents as dictionaries, for `replay()`, `scan` and tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from engine.model.incidents import WHOLE, Alert, Blind, Evidence, Incident, Key, Part, Roster, Span, Verdict, span


class MemoryLedger:
    """Keeps everything it is told; answers like the incident store (tests/contracts/test_ledgers.py)."""

    def __init__(self) -> None:
        self._alerts: dict[str, dict[Key, tuple[Alert, ...]]] = {}
        self._incidents: dict[str, dict[str, Incident]] = {}
        self._evidence: dict[str, Evidence] = {}
        self._rosters: dict[str, Roster] = {}
        self._judged: dict[str, str] = {}
        self._blinds: dict[str, dict[Blind, None]] = {}

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[Blind],
    ) -> None:
        """Store what correlation said (see ports.Ledger)."""
        for verdict in verdicts:
            of_scope = self._alerts.setdefault(verdict.key[0], {})
            of_scope[verdict.key] = verdict.over(of_scope.get(verdict.key, ()))
        self._evidence.update((item.event_id, item) for item in evidence)
        self._rosters.update((roster.scope, roster) for roster in rosters)
        for blind in blinds:
            known = self._blinds.get(blind.scope, {}) if blind.what else {}
            self._blinds[blind.scope] = known | ({blind: None} if blind.what else {})

    def scopes(self) -> Sequence[str]:
        """Return every scope that something is known of, sorted."""
        return sorted(self._alerts)

    def alerts(self, scope: str, part: Part = WHOLE) -> Mapping[Key, tuple[Alert, ...]]:
        """Return the alerts of a part of `scope` by key, each ordered by time."""
        every = sorted(self._alerts.get(scope, {}).items())
        found = {key: tuple(a for a in alerts if part.holds(key[1], a.starts_at)) for key, alerts in every}
        return {key: alerts for key, alerts in found.items() if alerts}

    def incidents(self, scope: str, part: Part = WHOLE) -> Sequence[Incident]:
        """Return the last revision of every incident of a part of `scope`, oldest first, merged ones included."""
        return [each for each in self._incidents.get(scope, {}).values() if part.holds(each.rule, each.first_seen)]

    def spans(self, scope: str, rules: Collection[str]) -> Sequence[Span] | None:
        """Return when the alerts of `rules` were; None when one of them is at no known time."""
        every = (a for key, alerts in self._alerts.get(scope, {}).items() if key[1] in rules for a in alerts)
        found = [span(alert) for alert in every]
        return None if None in found else [each for each in found if each is not None]

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the rules that all of `scope` was last decided by."""
        return self._judged.get(scope)

    def put_judged(self, scope: str, plan: str) -> None:
        """Remember that all of `scope` was decided by the rules of this hash."""
        self._judged[scope] = plan

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the evidence known under these ids."""
        return {event_id: self._evidence[event_id] for event_id in event_ids if event_id in self._evidence}

    def roster(self, scope: str) -> Roster:
        """Return the members known in `scope` (empty when none are)."""
        return self._rosters.get(scope, Roster(scope, {}))

    def blinds(self, scope: str | None = None) -> Sequence[Blind]:
        """Return what cannot be judged in `scope`, or anywhere when it is None."""
        scopes = sorted(self._blinds) if scope is None else [scope]
        found = (blind for name in scopes for blind in self._blinds.get(name, ()))
        return sorted(found, key=lambda blind: (blind.scope, blind.what, blind.why))

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions."""
        for incident in incidents:
            self._incidents.setdefault(incident.key[0], {})[incident.id] = incident
