"""Findings in, incident revisions out: stores what correlation says and decides again for the scopes it touched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from engine.incident.affected import AffectedAlerts, since, ties
from engine.incident.decide import decide
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
    sight,
)
from engine.model.rules import Plan
from engine.ports import Ledger
from engine.quarantine import OF_THE_HOST, Quarantine, attempt

CHUNK = 1000  # findings that are put into the ledger at once: they are not held in memory besides


def group(findings: Iterable[Finding], plan: Plan, ledger: Ledger, quarantine: Quarantine | None = None) -> Iterator[Incident]:
    """Yield new revisions of incidents, decided once all findings are in the ledger: a storm costs what it is.

    Decided again is what may be linked with what was said, by rule, entity and time; all of a scope when somebody else is
    known to belong to it, or when it was last decided by other rules. What raises goes into `quarantine`: the alerts of one
    entity where those alone do, else what was to be decided of the scope; without a quarantine it is raised.
    """
    waiting, touched = iter(findings), _Touched(plan, ledger)
    while chunk := list(islice(waiting, CHUNK)):
        touched.take(chunk, _put_each(chunk, ledger, quarantine))
    for scope, seen, incidents in touched.scopes():
        revisions = _decided(scope, ledger.alerts(scope, seen), incidents, plan, ledger, quarantine)
        ledger.put_incidents(revisions)
        yield from revisions


def regroup(plan: Plan, ledger: Ledger, quarantine: Quarantine | None = None) -> Iterator[Incident]:
    """Yield new revisions of incidents by rules that have changed since they were decided, of every scope: what is open under a
    rule that is gone would stay open for ever where nothing is said any more."""
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
    """Store findings, all together or, where that raises, those that can be."""
    if quarantine is None:
        return _put(chunk, ledger)
    try:
        return _put(chunk, ledger)
    except OF_THE_HOST:
        raise
    except Exception:
        each = (attempt(quarantine, "group", _matter(finding), _put, [finding], ledger) for finding in chunk)
        return [sight for changed in each for sight in changed or ()]


def _matter(finding: Finding) -> Verdict | str:
    return finding if isinstance(finding, Verdict) else f"{type(finding).__name__} of {finding}"


def _decided(
    scope: str,
    alerts: Mapping[AlertKey, tuple[Alert, ...]],
    incidents: Sequence[Incident],
    plan: Plan,
    ledger: Ledger,
    quarantine: Quarantine | None,
) -> Sequence[Incident]:
    """Return the revisions that are decided. Of alerts that cannot be decided about at all nothing stays in the ledger."""

    def decided(some: Mapping[AlertKey, tuple[Alert, ...]]) -> Sequence[Incident]:
        return decide(some, incidents, plan, ledger.roster(scope), ledger.evidence)

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
    """Return as many of the alerts as can be decided about together; the others go into quarantine. Halving finds one among
    many in few decisions."""
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


class _Touched:
    """What the chunks so far have touched: evidence may come in a later chunk than the verdict that it proves."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger = plan, ledger
        self._changed: dict[str, set[AlertInterval]] = defaultdict(set)  # by scope: alerts as they are, and as they were before
        self._proofs: set[str] = set()  # events that are told, perhaps anew as they have gone on since
        self._whole: set[str] = set()
        self._scopes: set[str] = set()  # that something was said of

    def take(self, chunk: Sequence[Finding], changed: Iterable[AlertInterval]) -> None:
        """Note what `chunk` touches; `changed` is what the ledger says of it."""
        verdicts = [f for f in chunk if isinstance(f, Verdict)]
        rosters = {f.scope for f in chunk if isinstance(f, Roster)}
        self._whole |= rosters
        self._scopes |= {verdict.key[0] for verdict in verdicts} | rosters
        self._proofs.update(f.event_id for f in chunk if isinstance(f, Evidence))
        alerts = (alert for verdict in verdicts for alert in verdict.alerts)
        proven = (sight(alert) for alert in alerts if not self._proofs.isdisjoint(alert.evidence))
        for each in (*changed, *proven):
            self._changed[each.key[0]].add(each)

    def scopes(self) -> Iterator[tuple[str, set[AlertInterval] | None, Sequence[Incident]]]:
        """Yield the scopes to decide now, and of each the alerts (None: all) and the incidents, oldest first."""
        for scope in sorted(self._scopes):
            if self._ledger.judged_by(scope) != self._plan.hash:
                self._whole.add(scope)
                self._ledger.put_judged(scope, self._plan.hash)
            yield scope, *((None, self._ledger.incidents(scope)) if scope in self._whole else self._affected(scope))

    def _affected(self, scope: str) -> tuple[set[AlertInterval], Sequence[Incident]]:
        """Return what may be linked with what changed: alerts, the incidents that were told for them, what these were told
        for besides, and so on until nothing is left out that could decide about any of it."""
        known, changed = ties(self._plan), self._changed[scope]
        vicinity, near, read_since = AffectedAlerts((), known), set(changed), EVER
        told: Sequence[Incident] = ()
        while True:
            if (needed := since(near, told, known)) < read_since:
                read_since = needed
                vicinity = AffectedAlerts({*self._ledger.sights(scope, needed), *changed}, known)
            near = vicinity.around(near)
            starts = {each.starts_at for each in near}  # who opened with one of these has the id that it would get
            candidates = self._ledger.incidents(scope, {each.key for each in near}, read_since)
            told = [i for i in candidates if i.opened_at in starts or not near.isdisjoint(vicinity.told_of(i))]
            besides = {each for incident in told if incident.status != "merged" for each in vicinity.told_of(incident)} - near
            if not besides and since(near, told, known) >= read_since:
                return near, told
            near |= besides
