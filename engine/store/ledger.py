"""The store as the Ledger that `group()` decides over: one connection, inside one transaction of its owner."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from engine.codec import dumps, loads
from engine.errors import DataLoss
from engine.model.incidents import WHOLE, Alert, Blind, Evidence, Incident, Key, Part, Roster, Span, Verdict, span
from engine.store import schema

REMOVED = ""  # the body of an alert that was removed for its age
_AT_ONCE = 500  # bound parameters of one statement


class StoreLedger:
    """Findings and incidents in SQL; the same answers as the ledger in memory (tests/contracts/test_ledgers.py)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[Blind],
    ) -> None:
        """Store what correlation said (see ports.Ledger)."""
        for verdict in verdicts:
            self._put_verdict(verdict)
        self._put(schema.evidence, [{"event_id": item.event_id, "body": dumps(item)} for item in evidence])
        self._put(schema.rosters, [{"scope": roster.scope, "body": dumps(roster)} for roster in rosters])
        self._put_blinds(blinds)

    def alerts(self, scope: str, part: Part = WHOLE) -> Mapping[Key, tuple[Alert, ...]]:
        """Return the alerts of a part of `scope` by key, each ordered by time."""
        table = schema.alerts
        chosen = select(table.c.rule, table.c.entity, table.c.body).where(table.c.scope == scope, table.c.body != REMOVED)
        if part.since is not None:
            chosen = chosen.where(table.c.starts_at >= schema.text(part.since))
        rows = self._connection.execute(_of(chosen, table, part.rules).order_by(*table.primary_key))
        found: dict[Key, list[Alert]] = {}
        for rule, entity, body in rows:
            found.setdefault(_key(scope, rule, entity), []).append(loads(body, Alert))
        return {key: tuple(alerts) for key, alerts in sorted(found.items())}

    def incidents(self, scope: str, part: Part = WHOLE) -> Sequence[Incident]:
        """Return the last revision of every incident of a part of `scope`, oldest first, merged ones included."""
        table = schema.incidents
        chosen = _of(select(table.c.body).where(table.c.scope == scope), table, part.rules)
        if part.since is not None:
            begun = table.c.first_seen
            chosen = chosen.where(or_(begun.is_(None), begun >= schema.text(part.since)))
        return [loads(body, Incident) for body in self._connection.scalars(chosen.order_by(table.c.number))]

    def spans(self, scope: str, rules: Collection[str]) -> Sequence[Span] | None:
        """Return when the alerts of `rules` were; None when one of them is at no known time."""
        table = schema.alerts
        chosen = select(table.c.starts_at, table.c.until).where(table.c.scope == scope, table.c.body != REMOVED)
        rows = self._connection.execute(_of(chosen, table, rules)).all()
        if any(until is None for _, until in rows):
            return None
        return [(datetime.fromisoformat(start), datetime.fromisoformat(until)) for start, until in rows]

    def judged_by(self, scope: str) -> str | None:
        """Return the hash of the rules that all of `scope` was last decided by."""
        return self._connection.scalar(select(schema.meta.c.value).filter_by(name=f"judged:{scope}"))

    def put_judged(self, scope: str, plan: str) -> None:
        """Remember that all of `scope` was decided by the rules of this hash."""
        self._put(schema.meta, [{"name": f"judged:{scope}", "value": plan}])

    def evidence(self, event_ids: Sequence[str]) -> Mapping[str, Evidence]:
        """Return the evidence known under these ids."""
        table, found = schema.evidence, {}
        for at in range(0, len(event_ids), _AT_ONCE):
            some = event_ids[at : at + _AT_ONCE]
            rows = self._connection.execute(select(table.c.event_id, table.c.body).where(table.c.event_id.in_(some)))
            found.update({event_id: loads(body, Evidence) for event_id, body in rows})
        return found

    def roster(self, scope: str) -> Roster:
        """Return the members known in `scope` (empty when none are)."""
        body = self._connection.scalar(select(schema.rosters.c.body).where(schema.rosters.c.scope == scope))
        return Roster(scope, {}) if body is None else loads(body, Roster)

    def blinds(self, scope: str) -> Sequence[Blind]:
        """Return what cannot be judged in `scope`."""
        table = schema.blinds
        rows = self._connection.execute(select(table.c.what, table.c.why).where(table.c.scope == scope))
        return sorted((Blind(scope, what, why) for what, why in rows), key=lambda blind: (blind.what, blind.why))

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions; the first one of an id gives it its place in the order of opening."""
        for incident in incidents:
            row = _incident_row(incident)
            self._put(schema.revisions, [{"id": incident.id, "revision": incident.revision, "body": row["body"]}])
            opening = {"id": incident.id, "number": self._next_number(), **row}
            statement = insert(schema.incidents).values(opening).on_conflict_do_update(index_elements=["id"], set_=row)
            self._connection.execute(statement)

    def put_losses(self, losses: Iterable[DataLoss]) -> None:
        """Remember lines that were gone before they were read; a loss told again is the same loss."""
        names = {"source": "source_id", "lost_from": "lost_from", "lost_to": "lost_to", "why": "why"}
        self._put(schema.losses, [{column: getattr(loss, name) for column, name in names.items()} for loss in losses])

    def _next_number(self) -> int:
        return 1 + (self._connection.scalar(select(func.max(schema.incidents.c.number))) or 0)

    def _put_verdict(self, verdict: Verdict) -> None:
        """Replace what a rule said of an entity (see Verdict.over); what was removed for its age stays so."""
        scope, rule, entity = verdict.key
        place, table = {"scope": scope, "rule": rule, "entity": entity_text(entity)}, schema.alerts
        rows = [{**place, **_alert_row(alert)} for alert in verdict.alerts]
        replaced = delete(table).filter_by(**place).where(table.c.body != REMOVED)
        if verdict.final_before is not None:
            replaced = replaced.where(table.c.starts_at >= schema.text(verdict.final_before))
        self._connection.execute(replaced)
        statement = insert(table)
        keys = [column.name for column in table.primary_key]
        fresh = {name: statement.excluded[name] for name in ("body", "until")}
        if rows:
            self._connection.execute(statement.on_conflict_do_update(keys, set_=fresh, where=table.c.body != REMOVED), rows)

    def _put_blinds(self, blinds: Iterable[Blind]) -> None:
        said: dict[Blind, None] = {}
        for blind in blinds:
            if blind.what:
                said[blind] = None
                continue
            self._connection.execute(delete(schema.blinds).where(schema.blinds.c.scope == blind.scope))
            said = {other: None for other in said if other.scope != blind.scope}
        self._put(schema.blinds, [{"scope": b.scope, "what": b.what, "why": b.why} for b in said])

    def _put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        statement = insert(table)
        values = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
        keys = [c.name for c in table.primary_key]
        if values:
            self._connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=values), rows)
        else:
            self._connection.execute(statement.on_conflict_do_nothing(index_elements=keys), rows)


def _incident_row(incident: Incident) -> dict[str, str | None]:
    return {
        "scope": incident.key[0],
        "status": incident.status,
        "body": dumps(incident),
        "rule": incident.rule,
        "changed_at": schema.text(datetime.now(UTC)),
        "first_seen": schema.text(incident.first_seen) if incident.first_seen else None,
    }


def _alert_row(alert: Alert) -> dict[str, str | None]:
    when = span(alert)
    return {"starts_at": schema.text(alert.starts_at), "until": schema.text(when[1]) if when else None, "body": dumps(alert)}


def _of(chosen: Select[Any], table: Table, rules: Collection[str] | None) -> Select[Any]:
    return chosen if rules is None else chosen.where(table.c.rule.in_(sorted(rules)))


def entity_text(entity: tuple[tuple[str, str], ...]) -> str:
    """Return the entity of a key as it is kept in the column `entity`."""
    return json.dumps(entity, ensure_ascii=False, separators=(",", ":"))


def _key(scope: str, rule: str, entity: str) -> Key:
    return scope, rule, tuple((label, value) for label, value in json.loads(entity))
