"""The ledger in memory: alerts and incidents as dictionaries, for `replay()`, `scan` and tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from engine.model.incidents import (
    DAWN,
    EVER,
    Alert,
    AlertInterval,
    AlertKey,
    Evidence,
    Incident,
    NotEvaluated,
    Roster,
    Verdict,
    extent,
    interval_of,
)
from engine.model.pictures import ClusterPicture, FactKey, StatedFact, change_by, picture_of, with_parts_gone


class MemoryLedger:
    """Keeps everything; returns the same as the incident store (tests/contracts/test_ledgers.py)."""

    def __init__(self) -> None:
        self._alerts: dict[str, dict[AlertKey, tuple[Alert, ...]]] = {}
        self._incidents: dict[str, dict[str, Incident]] = {}
        self._incidents_of: dict[AlertKey, dict[str, None]] = {}  # ids of incidents, by every key that a revision of them had
        self._evidence: dict[str, Evidence] = {}
        self._rosters: dict[str, Roster] = {}
        self._judged: dict[str, str] = {}
        self._blinds: dict[str, dict[NotEvaluated, None]] = {}
        self._facts: dict[str, dict[FactKey, dict[datetime, StatedFact]]] = {}  # by scope, thing and time
        self._pictures: dict[tuple[str, datetime], ClusterPicture | None] = {}  # by scope and the time of its newest fact

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[NotEvaluated],
    ) -> Sequence[AlertInterval]:
        """Store findings; return the alerts that have changed, as they were and as they are (see ports.Ledger)."""
        changed: list[AlertInterval] = []
        now: dict[AlertKey, tuple[Alert, ...]] = {}
        for verdict in verdicts:
            earlier = now.get(verdict.key, self._alerts.get(verdict.key[0], {}).get(verdict.key, ()))
            now[verdict.key] = verdict.over(earlier)
            changed += _changed(earlier, now[verdict.key])
        for key, alerts in now.items():
            self._alerts.setdefault(key[0], {})[key] = alerts
        self._evidence.update((item.event_id, item) for item in evidence)
        self._rosters.update((roster.scope, roster) for roster in rosters)
        for blind in blinds:
            earlier_blinds = self._blinds.get(blind.scope, {}) if blind.what else {}
            self._blinds[blind.scope] = earlier_blinds | ({blind: None} if blind.what else {})
        return changed

    def scopes(self) -> Sequence[str]:
        """Return every scope that has alerts or incidents, sorted."""
        return sorted({*self._alerts, *self._incidents})

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        """Return the alerts of `scope` by key, or those `seen` of them, each ordered by time."""
        every = self._alerts.get(scope, {})
        if seen is None:
            return {key: alerts for key, alerts in sorted(every.items()) if alerts}
        starts: dict[AlertKey, set[datetime]] = {}
        for interval in seen:
            starts.setdefault(interval.key, set()).add(interval.starts_at)
        chosen = {
            key: tuple(alert for alert in every.get(key, ()) if alert.starts_at in at) for key, at in sorted(starts.items())
        }
        return {key: alerts for key, alerts in chosen.items() if alerts}

    def alert_intervals(self, scope: str, since: datetime) -> Sequence[AlertInterval]:
        """Return the intervals of the alerts of `scope` that were not over before `since`, in no order."""
        every = (interval_of(alert) for alerts in self._alerts.get(scope, {}).values() for alert in alerts)
        return [interval for interval in every if interval.until is None or interval.until >= since]

    def incidents(self, scope: str, of_keys: Collection[AlertKey] | None = None, since: datetime = DAWN) -> Sequence[Incident]:
        """Return the last revision of every incident of `scope`, or of those that ever had one of these keys, oldest first."""
        every = self._incidents.get(scope, {})
        if of_keys is None:
            return list(every.values())
        ids = {id_ for key in of_keys for id_ in self._incidents_of.get(key, ())}
        incidents = (incident for id_, incident in every.items() if id_ in ids)
        return [incident for incident in incidents if (extent(incident) or (EVER, EVER))[1] >= since]

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the rules by which all of `scope` was last decided; None when it never was."""
        return self._judged.get(scope)

    def put_judged(self, scope: str, plan: str) -> None:
        """Record that all of `scope` was decided by the rules with this hash."""
        self._judged[scope] = plan

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the evidence of these event ids; ids without evidence are left out."""
        return {event_id: self._evidence[event_id] for event_id in event_ids if event_id in self._evidence}

    def roster(self, scope: str) -> Roster:
        """Return the last roster of `scope`; an empty one when there is none."""
        return self._rosters.get(scope, Roster(scope, {}))

    def rosters(self) -> Sequence[Roster]:
        """Return the last roster of every scope that has one, by scope."""
        return [self._rosters[scope] for scope in sorted(self._rosters)]

    def blinds(self, scope: str | None = None) -> Sequence[NotEvaluated]:
        """Return what is not evaluated in `scope`, or in all scopes when it is None, sorted."""
        scopes = sorted(self._blinds) if scope is None else [scope]
        blinds = (blind for name in scopes for blind in self._blinds.get(name, ()))
        return sorted(blinds, key=lambda blind: (blind.scope, blind.what, blind.why))

    def put_facts(self, stated: Iterable[StatedFact]) -> Sequence[StatedFact]:
        """Store what servers stated, in order of time; return those that differ from the fact before about the same thing."""
        changed = []
        self._pictures.clear()
        for fact in with_parts_gone(stated, self._newest_facts):
            of_thing = self._facts.setdefault(fact.scope, {}).setdefault(fact.key, {})
            at = max((at for at in of_thing if at <= fact.at), default=None)
            change = change_by(fact, None if at is None else of_thing[at])
            if change is not None:
                of_thing[change.stored.at] = change.stored
                if change.removed is not None:
                    del of_thing[change.removed.at]
                changed += [fact] if change.is_news else []
        return changed

    def _newest_facts(self, scope: str, kind: str) -> list[StatedFact]:
        of_scope = self._facts.get(scope, {})
        return [of_thing[max(of_thing)] for (of_kind, _), of_thing in of_scope.items() if of_kind == kind and of_thing]

    def picture(self, scope: str, until: datetime) -> ClusterPicture | None:
        """Return what was stated about `scope` until then; None when nothing was."""
        of_scope = self._facts.get(scope, {})
        reached = max((at for of_thing in of_scope.values() for at in of_thing if at <= until), default=DAWN)
        if (scope, reached) not in self._pictures:
            stated = (fact for of_thing in of_scope.values() for at, fact in of_thing.items() if at <= until)
            self._pictures[scope, reached] = picture_of(stated)
        picture = self._pictures[scope, reached]
        return None if picture is None else picture.seen_until(until)

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions."""
        for incident in incidents:
            self._incidents.setdefault(incident.key[0], {})[incident.id] = incident
            for key in incident.alerts:
                self._incidents_of.setdefault(key, {})[incident.id] = None


def _changed(earlier: tuple[Alert, ...], now: tuple[Alert, ...]) -> Iterator[AlertInterval]:
    """Yield the alerts of one key that were removed, replaced or added, as they were and as they are."""
    old, new = ({alert.starts_at: alert for alert in alerts} for alerts in (earlier, now))
    for start in old.keys() | new.keys():
        if old.get(start) != new.get(start):
            yield from (interval_of(alerts[start]) for alerts in (old, new) if start in alerts)
