"""Findings in, incident revisions out: store the findings and decide again about the incidents that they affect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from engine.incident.affected import AffectedAlerts, affected_since
from engine.incident.decide import decide
from engine.incident.link_table import link_table
from engine.model.incidents import (
    EVER,
    Alert,
    AlertInterval,
    AlertKey,
    Evidence,
    Finding,
    Incident,
    NotEvaluated,
    Roster,
    Verdict,
    interval_of,
)
from engine.model.pictures import OF_STEPS, StatedFact
from engine.model.rules import Plan
from engine.ports import Ledger
from engine.quarantine import OF_THE_HOST, Quarantine, attempt

CHUNK = 1000  # findings that are put into the ledger at once; no more are held in memory


def group(findings: Iterable[Finding], plan: Plan, ledger: Ledger, quarantine: Quarantine | None = None) -> Iterator[Incident]:
    """Yield new revisions of incidents, decided once all findings are in the ledger.

    Only alerts that may be linked with the findings, by rule, entity and time, are decided again, so the cost is that of the
    findings. A whole scope is decided again when its roster has changed, or when it was last decided with other rules.

    Args:
        quarantine: where errors go: the alerts of one entity if they alone raise, else the decision about the scope.
            Without a quarantine an error is raised.
    """
    waiting, affected = iter(findings), _AffectedScopes(plan, ledger)
    while chunk := list(islice(waiting, CHUNK)):
        affected.add(chunk, _put_each(chunk, ledger, quarantine))
        if stated := [finding for finding in chunk if isinstance(finding, StatedFact)]:
            affected.add_facts(ledger.put_facts(stated))
    for scope, intervals, incidents in affected.scopes():
        revisions = _decided(scope, ledger.alerts(scope, intervals), incidents, plan, ledger, quarantine)
        ledger.put_incidents(revisions)
        yield from revisions


def regroup(plan: Plan, ledger: Ledger, quarantine: Quarantine | None = None) -> Iterator[Incident]:
    """Yield new revisions of incidents of every scope that was last decided by other rules than those of `plan`.

    Without it an incident of a removed rule would stay open for ever in a scope that has no new findings.
    """
    for scope in ledger.scopes():
        if ledger.judged_by(scope) in (None, plan.hash):
            continue
        ledger.put_judged(scope, plan.hash)
        revisions = _decided(scope, ledger.alerts(scope), ledger.incidents(scope), plan, ledger, quarantine)
        ledger.put_incidents(revisions)
        yield from revisions


def _put(findings: Sequence[Finding], ledger: Ledger) -> Sequence[AlertInterval]:
    return ledger.put_findings(
        [f for f in findings if isinstance(f, Verdict)],
        [f for f in findings if isinstance(f, Evidence)],
        [f for f in findings if isinstance(f, Roster)],
        [f for f in findings if isinstance(f, NotEvaluated)],
    )


def _put_each(chunk: Sequence[Finding], ledger: Ledger, quarantine: Quarantine | None) -> Sequence[AlertInterval]:
    """Store findings, all together or, where that raises, one by one; return the alerts that have changed."""
    if quarantine is None:
        return _put(chunk, ledger)
    try:
        return _put(chunk, ledger)
    except OF_THE_HOST:
        raise
    except Exception:
        puts = (attempt(quarantine, "group", _matter(finding), _put, [finding], ledger) for finding in chunk)
        return [interval for changed in puts for interval in changed or ()]


def _matter(finding: Finding) -> Verdict | str:
    """Return the text of the dead letter for a finding that could not be stored."""
    return finding if isinstance(finding, Verdict) else f"{type(finding).__name__} of {finding}"


def _decided(
    scope: str,
    alerts: Mapping[AlertKey, tuple[Alert, ...]],
    incidents: Sequence[Incident],
    plan: Plan,
    ledger: Ledger,
    quarantine: Quarantine | None,
) -> Sequence[Incident]:
    """Return the new revisions. Alerts on which the decision raises are removed from the ledger."""

    def decided(about: Mapping[AlertKey, tuple[Alert, ...]]) -> Sequence[Incident]:
        return decide(about, incidents, plan, ledger.roster(scope), ledger.evidence, partial(ledger.picture, scope))

    if quarantine is None:
        return decided(alerts)
    try:
        return decided(alerts)
    except OF_THE_HOST:
        raise
    except Exception:
        sound = _sound(alerts, decided, quarantine)
        ledger.put_findings([Verdict(key, ()) for key in alerts.keys() - sound.keys()], (), (), ())
        return attempt(quarantine, "group", scope, decided, sound) or ()


def _sound(
    alerts: Mapping[AlertKey, tuple[Alert, ...]],
    decided: Callable[[Mapping[AlertKey, tuple[Alert, ...]]], object],
    quarantine: Quarantine,
) -> Mapping[AlertKey, tuple[Alert, ...]]:
    """Return the alerts that can be decided about together; the others go into quarantine.

    The alerts are halved until the ones that raise are alone, which takes few decisions when they are few.
    """
    sound: dict[AlertKey, tuple[Alert, ...]] = {}
    waiting = [sorted(alerts)]
    while waiting:
        keys = waiting.pop()
        more = {**sound, **{key: alerts[key] for key in keys}}
        if len(keys) == 1:
            sound = more if attempt(quarantine, "group", Verdict(keys[0], ()), decided, more) is not None else sound
            continue
        try:
            decided(more)
        except OF_THE_HOST:
            raise
        except Exception:
            waiting += [keys[len(keys) // 2 :], keys[: len(keys) // 2]]
        else:
            sound = more
    return sound


class _AffectedScopes:
    """The scopes that have findings, and the alerts to decide again in each.

    Evidence may come in a later chunk than the verdict that it proves, so chunks are collected first.
    """

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger = plan, ledger
        self._changed: dict[str, set[AlertInterval]] = defaultdict(set)  # by scope: alerts as they are, and as they were before
        self._evidence: set[str] = set()  # ids of the events that were stored, perhaps anew as they were extended
        self._whole: set[str] = set()  # scopes to decide as a whole
        self._scopes: set[str] = set()  # scopes with findings
        self._stepped: set[str] = set()  # scopes of which something was stated that a step of a fix may be about

    def add(self, chunk: Sequence[Finding], changed: Iterable[AlertInterval]) -> None:
        """Add stored findings.

        Args:
            changed: the alerts that changed when they were stored, as the ledger returned them.
        """
        verdicts = [f for f in chunk if isinstance(f, Verdict)]
        rosters = {f.scope for f in chunk if isinstance(f, Roster)}
        self._whole |= rosters
        self._scopes |= {verdict.key[0] for verdict in verdicts} | rosters
        self._evidence.update(f.event_id for f in chunk if isinstance(f, Evidence))
        alerts = (alert for verdict in verdicts for alert in verdict.alerts)
        proved = (interval_of(alert) for alert in alerts if not self._evidence.isdisjoint(alert.evidence))
        for interval in (*changed, *proved):
            self._changed[interval.key[0]].add(interval)

    def add_facts(self, changed: Iterable[StatedFact]) -> None:
        """Add facts that are news: alerts that began later show what they touch by them, and steps that are done may be shown
        as done."""
        since: dict[str, datetime] = {}
        for fact in changed:
            since[fact.scope] = min(fact.at, since.get(fact.scope, fact.at))
            if fact.kind in OF_STEPS:
                self._stepped.add(fact.scope)
        for scope, at in since.items():
            intervals = self._ledger.alert_intervals(scope, at)
            is_open = scope in self._stepped
            later = [each for each in intervals if each.starts_at >= at or (is_open and each.until in (None, EVER))]
            self._changed[scope].update(later)
            self._scopes |= {scope} if later else set()

    def scopes(self) -> Iterator[tuple[str, set[AlertInterval] | None, Sequence[Incident]]]:
        """Yield the scopes to decide, sorted, and of each the alerts (None: all) and the incidents, oldest first."""
        for scope in sorted(self._scopes):
            if self._ledger.judged_by(scope) != self._plan.hash:
                self._whole.add(scope)
                self._ledger.put_judged(scope, self._plan.hash)
            yield scope, *((None, self._ledger.incidents(scope)) if scope in self._whole else self._affected(scope))

    def _affected(self, scope: str) -> tuple[set[AlertInterval], Sequence[Incident]]:
        """Return the alerts and incidents that may be linked with what has changed.

        These are the changed alerts, those that may be linked with them, the incidents of any of these, the alerts of these
        incidents, and so on until nothing is left out that could change the decision about any of them.
        """
        table, changed = link_table(self._plan), self._changed[scope]
        affected, alerts, read_since = AffectedAlerts((), table), set(changed), EVER
        incidents: Sequence[Incident] = ()
        while True:
            if (needed := affected_since(alerts, incidents, table)) < read_since:
                read_since = needed
                affected = AffectedAlerts({*self._ledger.alert_intervals(scope, needed), *changed}, table)
            alerts = affected.around(alerts)
            starts = {alert.starts_at for alert in alerts}  # an incident that opened with one of these has the id it would get
            candidates = self._ledger.incidents(scope, {alert.key for alert in alerts}, read_since)
            incidents = [i for i in candidates if i.opened_at in starts or not alerts.isdisjoint(affected.of_incident(i))]
            unmerged = (incident for incident in incidents if incident.status != "merged")
            added = {alert for incident in unmerged for alert in affected.of_incident(incident)} - alerts
            if not added and affected_since(alerts, incidents, table) >= read_since:
                return alerts, incidents
            alerts |= added
