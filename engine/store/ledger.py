"""The store as the Ledger that `group()` reads and writes: one connection, in a transaction of the caller."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, case, delete, func, or_, select, union

from engine.acting import began
from engine.codec import dumps, loads
from engine.errors import DataLoss
from engine.model.incidents import (
    DAWN,
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
from engine.model.pictures import ClusterPicture, StatedFact
from engine.model.quarantine import DeadLetter
from engine.store import schema
from engine.store.databases import upsert
from engine.store.facts import FactTable

MAX_LETTERS = 1000
REMOVED = ""  # the body of an alert that was removed for its age

# statements are built once: building one takes longer than SQLite takes to execute it
_LAST_NUMBER = select(func.max(schema.incidents.c.number))
_LAST_POSITION = select(func.max(schema.revisions.c.position))
_OF_ENTITY = [schema.alerts.c[name] == bindparam(name) for name in ("scope", "rule", "entity")]
_ALERTS_SINCE = select(schema.alerts.c.starts_at, schema.alerts.c.until, schema.alerts.c.body).where(
    *_OF_ENTITY, schema.alerts.c.starts_at >= bindparam("start")
)
_LABELS_GONE = delete(schema.incident_labels).where(schema.incident_labels.c.incident == bindparam("id"))
_ALERT_GONE = delete(schema.alerts).where(*_OF_ENTITY, schema.alerts.c.starts_at == bindparam("start"))


class StoreLedger:
    """Findings and incidents in SQL, with the same results as the ledger in memory (tests/contracts/test_ledgers.py)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[NotEvaluated],
    ) -> Sequence[AlertInterval]:
        """Store the findings of correlation; return the intervals of the alerts that changed (see ports.Ledger)."""
        with self._connection.begin_nested():
            changed = [interval for verdict in verdicts for interval in self._put_verdict(verdict)]
            self._put(schema.evidence, [{"event_id": item.event_id, "body": dumps(item)} for item in evidence])
            self._put(schema.rosters, [{"scope": roster.scope, "body": dumps(roster)} for roster in rosters])
            self._put_blinds(blinds)
        return changed

    def scopes(self) -> Sequence[str]:
        """Return every scope with alerts or incidents, sorted."""
        scopes = union(select(schema.alerts.c.scope), select(schema.incidents.c.scope))
        return sorted(self._connection.scalars(scopes))

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        """Return the alerts of `scope`, or those of the intervals `seen`, by key; for each key ordered by time."""
        table = schema.alerts
        columns = (table.c.rule, table.c.entity, table.c.starts_at, table.c.body)
        query = select(*columns).where(table.c.scope == scope, table.c.body != REMOVED)
        row_keys = (
            None
            if seen is None
            else {(interval.key[1], entity_text(interval.key[2]), schema.text(interval.starts_at)) for interval in seen}
        )
        if row_keys is not None:
            earliest = min((starts_at for *_, starts_at in row_keys), default="")
            query = query.where(table.c.rule.in_({rule for rule, *_ in row_keys}), table.c.starts_at >= earliest)
        alerts_by_key: dict[AlertKey, list[Alert]] = {}
        for rule, entity, starts_at, body in self._connection.execute(query.order_by(*table.primary_key)).all():
            if row_keys is None or (rule, entity, starts_at) in row_keys:
                alert = loads(body, Alert)
                alerts_by_key.setdefault(_key(scope, rule, entity) or alert.key, []).append(alert)
        return {key: tuple(alerts) for key, alerts in sorted(alerts_by_key.items())}

    def alert_intervals(self, scope: str, since: datetime) -> Sequence[AlertInterval]:
        """Return the intervals of the alerts of `scope` that ended at `since` or later, or have not ended; in no order."""
        table = schema.alerts
        long_body = case((table.c.entity.startswith(schema.LONG_KEY), table.c.body))
        query = select(table.c.rule, table.c.entity, table.c.starts_at, table.c.until, long_body).where(
            table.c.scope == scope,
            table.c.body != REMOVED,
            or_(table.c.until.is_(None), table.c.until >= schema.text(since)),
        )
        rows = self._connection.execute(query).all()
        return [
            _interval(_key(scope, rule, entity) or loads(body or "", Alert).key, start, until)
            for rule, entity, start, until, body in rows
        ]

    def incidents(self, scope: str, of_keys: Collection[AlertKey] | None = None, since: datetime = DAWN) -> Sequence[Incident]:
        """Return the last revision of the incidents of `scope`, in order of opening.

        Args:
            of_keys: only incidents that had an alert of one of these keys at any revision.
            since: with `of_keys`, only incidents that went on until then or later.
        """
        table = schema.incidents
        query = select(table.c.number, table.c.body).where(table.c.scope == scope)
        if of_keys is None:
            return [loads(body, Incident) for _, body in self._connection.execute(query.order_by(table.c.number))]
        query = query.where(or_(table.c.until.is_(None), table.c.until >= schema.text(since)))
        incident_keys, body_by_number = schema.incident_keys, dict[int, str]()
        keys = [key_text(key) for key in of_keys]
        for chunk in schema.in_chunks(keys):
            ids = select(incident_keys.c.incident).where(incident_keys.c.scope == scope, incident_keys.c.key.in_(chunk))
            body_by_number.update((number, body) for number, body in self._connection.execute(query.where(table.c.id.in_(ids))))
        return [loads(body, Incident) for _, body in sorted(body_by_number.items())]

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the plan that all of `scope` was last decided by; None for never."""
        return self._connection.scalar(select(schema.meta.c.value).filter_by(name=f"judged:{scope}"))

    def put_judged(self, scope: str, plan: str) -> None:
        """Record that all of `scope` was decided by the plan with this hash."""
        self._put(schema.meta, [{"name": f"judged:{scope}", "value": plan}])

    def put_explained(self, rules: Collection[str]) -> None:
        """Store the ids of the rules that other rules explain (see Plan.explained_rules), for a notifier in another process."""
        self._put(schema.meta, [{"name": schema.EXPLAINED, "value": dumps(sorted(rules))}])

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the stored evidence by event id; unknown ids are left out."""
        table, evidence = schema.evidence, {}
        for ids in schema.in_chunks(event_ids):
            rows = self._connection.execute(select(table.c.event_id, table.c.body).where(table.c.event_id.in_(ids)))
            evidence.update({event_id: loads(body, Evidence) for event_id, body in rows})
        return evidence

    def roster(self, scope: str) -> Roster:
        """Return the roster of `scope`; empty when none is stored."""
        body = self._connection.scalar(select(schema.rosters.c.body).where(schema.rosters.c.scope == scope))
        return Roster(scope, {}) if body is None else loads(body, Roster)

    def put_facts(self, stated: Iterable[StatedFact]) -> Sequence[StatedFact]:
        """Store what servers stated, in order of time; return those that differ from the fact before about the same thing."""
        return FactTable(self._connection).put(stated)

    def picture(self, scope: str, until: datetime) -> ClusterPicture | None:
        """Return what was stated about `scope` until then; None when nothing was."""
        return FactTable(self._connection).picture(scope, until)

    def blinds(self, scope: str) -> Sequence[NotEvaluated]:
        """Return what is not evaluated in `scope`, ordered by what and why."""
        table = schema.blinds
        rows = self._connection.execute(select(table.c.what, table.c.why).where(table.c.scope == scope))
        return sorted((NotEvaluated(scope, what, why) for what, why in rows), key=lambda blind: (blind.what, blind.why))

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions. The first revision of an id determines its position in the order of opening."""
        revisions = [(incident, _incident_row(incident)) for incident in incidents]
        if not revisions:
            return
        positions = enumerate(revisions, 1 + (self._connection.scalar(_LAST_POSITION) or 0))
        self._put(
            schema.revisions,
            [
                {"id": incident.id, "revision": incident.revision, "body": row["body"], "position": position}
                for position, (incident, row) in positions
            ],
        )
        places = enumerate(revisions, 1 + (self._connection.scalar(_LAST_NUMBER) or 0))
        self._put(schema.incidents, [{"id": incident.id, "number": number, **row} for number, (incident, row) in places])
        self._put(schema.searchable, [_searchable_row(incident) for incident, _ in revisions])
        self._put_labels({incident.id: incident.labels for incident, _ in revisions})
        key_rows = [
            {"scope": key[0], "key": key_text(key), "incident": incident.id}
            for incident, _ in revisions
            for key in incident.alerts
        ]
        self._put(schema.incident_keys, key_rows)

    def put_losses(self, losses: Iterable[DataLoss]) -> None:
        """Store losses of input; a loss that is reported again is the same loss."""
        rows = [
            {
                "source": schema.key_of(loss.source_id),
                "lost_from": loss.lost_from,
                "lost_to": loss.lost_to,
                "why": loss.why,
            }
            for loss in losses
        ]
        self._put(schema.losses, rows)

    def put_quarantined(self, letters: Iterable[DeadLetter], now: datetime) -> None:
        """Store dead letters and keep the newest MAX_LETTERS of all. A letter from the same place is the same letter.

        Args:
            now: the time of letters that have none.
        """
        rows = [{"id": _letter_id(letter), "at": schema.text(letter.at or now), "body": dumps(letter)} for letter in letters]
        if not rows:
            return
        self._put(schema.quarantine, rows)
        table = schema.quarantine
        newest = select(table.c.id).order_by(table.c.at.desc(), table.c.id).limit(MAX_LETTERS)
        self._connection.execute(delete(table).where(table.c.id.not_in(newest)))

    def _put_labels(self, labels_by_incident: Mapping[str, Mapping[str, str]]) -> None:
        """Store the labels of incidents in place of those that they had."""
        table = schema.incident_labels
        self._connection.execute(_LABELS_GONE, [{"id": id_} for id_ in labels_by_incident])
        labels = ((id_, name, value) for id_, labels in labels_by_incident.items() for name, value in labels.items())
        self._put(table, [{"incident": id_, "name": name, "value": value} for id_, name, value in labels])

    def _put_verdict(self, verdict: Verdict) -> Iterator[AlertInterval]:
        """Replace the alerts of a rule for an entity (see Verdict.over); yield the old and new intervals of those that differ.

        Alerts that were removed for their age stay removed.
        """
        scope, rule, entity = verdict.key
        entity_columns = {"scope": scope, "rule": rule, "entity": entity_text(entity)}
        final = schema.text(verdict.final_before or DAWN)
        new = {schema.text(alert.starts_at): (interval_of(alert), dumps(alert), alert.evidence) for alert in verdict.alerts}
        earlier = self._connection.execute(_ALERTS_SINCE, {**entity_columns, "start": min((final, *new))})
        old = {row.starts_at: row for row in earlier}
        removed = [start for start, row in old.items() if start >= final and start not in new and row.body != REMOVED]
        changed = [start for start, (_, body, _) in new.items() if start not in old or old[start].body not in (body, REMOVED)]
        if removed:
            self._connection.execute(_ALERT_GONE, [{**entity_columns, "start": start} for start in removed])
        self._put(schema.alerts, [{**entity_columns, **_alert_row(*new[start][:2])} for start in changed])
        events = [(start, event_id) for start in changed for event_id in new[start][2]]
        self._put(
            schema.alert_evidence, [{**entity_columns, "starts_at": start, "event_id": event_id} for start, event_id in events]
        )
        yield from (_interval(verdict.key, start, old[start].until) for start in (*removed, *changed) if start in old)
        yield from (new[start][0] for start in changed)

    def _put_blinds(self, blinds: Iterable[NotEvaluated]) -> None:
        new: dict[NotEvaluated, None] = {}
        for blind in blinds:
            if blind.what:
                new[blind] = None
                continue
            self._connection.execute(delete(schema.blinds).where(schema.blinds.c.scope == blind.scope))
            new = {other: None for other in new if other.scope != blind.scope}
        rows = [{"scope": blind.scope, "what": blind.what, "why": blind.why} for blind in new]
        self._put(schema.blinds, [{"id": schema.digest(*row.values()), **row} for row in rows])

    def _put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(upsert(table, self._connection.dialect.name), rows)


def _incident_row(incident: Incident) -> dict[str, str | int | None]:
    when = extent(incident)
    return {
        "scope": incident.key[0],
        "status": incident.status,
        "body": dumps(incident),
        "rule": incident.rule,
        "changed_at": schema.text(datetime.now(UTC)),
        "first_seen": schema.text(incident.first_seen) if incident.first_seen else None,
        "until": schema.text(when[1]) if when else None,
        "state": "pending" if incident.pending else incident.status,
        "severity": incident.severity,
        "component": incident.component,
        "seen": schema.text(incident.last_seen) if incident.last_seen else "",
        "merged_into": incident.merged_into,
        "began": schema.text(start) if (start := began(incident)) else "",
        "count": incident.count,
    }


def _searchable_row(incident: Incident) -> dict[str, str]:
    labels = json.dumps(dict(incident.labels), ensure_ascii=False)
    texts = (incident.title, incident.cause, incident.rule, labels, *(event.text for event in incident.evidence))
    texts += tuple(words[text] for words in incident.translations.values() for text in texts[:2] if text in words)
    return {"incident": incident.id, "text": "\n".join(texts).lower()}


def _alert_row(interval: AlertInterval, body: str) -> dict[str, str | None]:
    until = schema.text(interval.until) if interval.until else None
    return {"starts_at": schema.text(interval.starts_at), "until": until, "body": body}


def _letter_id(letter: DeadLetter) -> str:
    place = letter.stage, letter.source_id, str(letter.offset), str(letter.number), letter.rule_id
    text = () if letter.source_id else (letter.text,)
    return hashlib.sha256("\0".join((*place, *text)).encode("utf-8", "replace")).hexdigest()[:16]


def _interval(key: AlertKey, starts_at: str, until: str | None) -> AlertInterval:
    return AlertInterval(key, datetime.fromisoformat(starts_at), datetime.fromisoformat(until) if until else None)


def key_text(key: AlertKey) -> str:
    """Return a key as stored in the column `key`, without the scope, which has its own column."""
    return f"{key[1]} {entity_text(key[2])}"


@lru_cache(maxsize=10_000)  # a batch writes of the same ones again and again
def entity_text(entity: tuple[tuple[str, str], ...]) -> str:
    """Return the entity of a key as stored in the column `entity`: JSON, shortened by schema.key_of."""
    return schema.key_of(json.dumps(entity, ensure_ascii=False, separators=(",", ":")))


@lru_cache(maxsize=10_000)  # a batch looks at the same ones again and again
def _key(scope: str, rule: str, entity: str) -> AlertKey | None:
    """Return the key of which `entity` is stored in full; None for a shortened one, which only the alert itself has."""
    if entity.startswith(schema.LONG_KEY):
        return None
    return scope, rule, tuple((label, value) for label, value in json.loads(entity))
