"""The store as the Ledger that `group()` decides over: one connection, inside one transaction of its owner."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, func, or_, select, union
from sqlalchemy.dialects.sqlite import Insert, insert

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
    sight,
)
from engine.model.quarantine import DeadLetter
from engine.store import schema

KEPT_LETTERS = 1000
REMOVED = ""  # the body of an alert that was removed for its age
_AT_ONCE = 500  # bound parameters of one statement

# statements are made once: that takes longer than SQLite takes to do what they say
_LAST_NUMBER = select(func.max(schema.incidents.c.number))
_OF_ENTITY = [schema.alerts.c[name] == bindparam(name) for name in ("scope", "rule", "entity")]
_ALERTS_SINCE = select(schema.alerts.c.starts_at, schema.alerts.c.until, schema.alerts.c.body).where(
    *_OF_ENTITY, schema.alerts.c.starts_at >= bindparam("start")
)
_ALERT_GONE = delete(schema.alerts).where(*_OF_ENTITY, schema.alerts.c.starts_at == bindparam("start"))


class StoreLedger:
    """Findings and incidents in SQL; the same answers as the ledger in memory (tests/contracts/test_ledgers.py)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put_findings(
        self,
        verdicts: Iterable[Verdict],
        evidence: Iterable[Evidence],
        rosters: Iterable[Roster],
        blinds: Iterable[NotEvaluated],
    ) -> Sequence[AlertInterval]:
        """Store what correlation said, and return what changed by it (see ports.Ledger)."""
        with self._connection.begin_nested():
            changed = [each for verdict in verdicts for each in self._put_verdict(verdict)]
            self._put(schema.evidence, [{"event_id": item.event_id, "body": dumps(item)} for item in evidence])
            self._put(schema.rosters, [{"scope": roster.scope, "body": dumps(roster)} for roster in rosters])
            self._put_blinds(blinds)
        return changed

    def scopes(self) -> Sequence[str]:
        """Return every scope that something is known of, sorted."""
        every = union(select(schema.alerts.c.scope), select(schema.incidents.c.scope))
        return sorted(self._connection.scalars(every))

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        """Return the alerts of `scope` by key, or those `seen` of them, each ordered by time."""
        table = schema.alerts
        columns = (table.c.rule, table.c.entity, table.c.starts_at, table.c.body)
        chosen = select(*columns).where(table.c.scope == scope, table.c.body != REMOVED)
        wanted = (
            None if seen is None else {(each.key[1], entity_text(each.key[2]), schema.text(each.starts_at)) for each in seen}
        )
        if wanted is not None:
            earliest = min((starts_at for *_, starts_at in wanted), default="")
            chosen = chosen.where(table.c.rule.in_({rule for rule, *_ in wanted}), table.c.starts_at >= earliest)
        found: dict[AlertKey, list[Alert]] = {}
        for rule, entity, starts_at, body in self._connection.execute(chosen.order_by(*table.primary_key)).all():
            if wanted is None or (rule, entity, starts_at) in wanted:
                found.setdefault(_key(scope, rule, entity), []).append(loads(body, Alert))
        return {key: tuple(alerts) for key, alerts in sorted(found.items())}

    def sights(self, scope: str, since: datetime) -> Sequence[AlertInterval]:
        """Return when the alerts of `scope` were that were not over before `since`."""
        table = schema.alerts
        chosen = select(table.c.rule, table.c.entity, table.c.starts_at, table.c.until).where(
            table.c.scope == scope,
            table.c.body != REMOVED,
            or_(table.c.until.is_(None), table.c.until >= schema.text(since)),
        )
        rows = self._connection.execute(chosen).all()
        return [_sight(_key(scope, rule, entity), start, until) for rule, entity, start, until in rows]

    def incidents(self, scope: str, told_of: Collection[AlertKey] | None = None, since: datetime = DAWN) -> Sequence[Incident]:
        """Return the last revision of every incident of `scope`, or of those ever told of one of these keys, oldest first."""
        table = schema.incidents
        chosen = select(table.c.number, table.c.body).where(table.c.scope == scope)
        if told_of is None:
            return [loads(body, Incident) for _, body in self._connection.execute(chosen.order_by(table.c.number))]
        chosen = chosen.where(or_(table.c.until.is_(None), table.c.until >= schema.text(since)))
        told, found = schema.told, dict[int, str]()
        keys = [key_text(key) for key in told_of]
        for at in range(0, len(keys), _AT_ONCE):
            ids = select(told.c.incident).where(told.c.scope == scope, told.c.key.in_(keys[at : at + _AT_ONCE]))
            found.update((number, body) for number, body in self._connection.execute(chosen.where(table.c.id.in_(ids))))
        return [loads(body, Incident) for _, body in sorted(found.items())]

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

    def blinds(self, scope: str) -> Sequence[NotEvaluated]:
        """Return what cannot be judged in `scope`."""
        table = schema.blinds
        rows = self._connection.execute(select(table.c.what, table.c.why).where(table.c.scope == scope))
        return sorted((NotEvaluated(scope, what, why) for what, why in rows), key=lambda blind: (blind.what, blind.why))

    def put_incidents(self, incidents: Iterable[Incident]) -> None:
        """Store new revisions; the first one of an id gives it its place in the order of opening."""
        every = [(incident, _incident_row(incident)) for incident in incidents]
        if not every:
            return
        self._put(schema.revisions, [{"id": each.id, "revision": each.revision, "body": row["body"]} for each, row in every])
        places = enumerate(every, self._next_number())
        self._put(schema.incidents, [{"id": each.id, "number": number, **row} for number, (each, row) in places])
        told = [{"scope": key[0], "key": key_text(key), "incident": each.id} for each, _ in every for key in each.alerts]
        self._put(schema.told, told)

    def put_losses(self, losses: Iterable[DataLoss]) -> None:
        """Remember lines that were gone before they were read; a loss told again is the same loss."""
        names = {"source": "source_id", "lost_from": "lost_from", "lost_to": "lost_to", "why": "why"}
        self._put(schema.losses, [{column: getattr(loss, name) for column, name in names.items()} for loss in losses])

    def put_quarantined(self, letters: Iterable[DeadLetter], now: datetime) -> None:
        """Keep dead letters, the newest KEPT_LETTERS of all; one that comes again from the same place is the same letter."""
        rows = [{"id": _letter_id(each), "at": schema.text(each.at or now), "body": dumps(each)} for each in letters]
        if not rows:
            return
        self._put(schema.quarantine, rows)
        table = schema.quarantine
        kept = select(table.c.id).order_by(table.c.at.desc(), table.c.id).limit(KEPT_LETTERS)
        self._connection.execute(delete(table).where(table.c.id.not_in(kept)))

    def _next_number(self) -> int:
        return 1 + (self._connection.scalar(_LAST_NUMBER) or 0)

    def _put_verdict(self, verdict: Verdict) -> Iterator[AlertInterval]:
        """Replace what a rule said of an entity (see Verdict.over), and yield when the alerts were and are that differ; what
        was removed for its age stays so."""
        scope, rule, entity = verdict.key
        place = {"scope": scope, "rule": rule, "entity": entity_text(entity)}
        final = schema.text(verdict.final_before or DAWN)
        now = {schema.text(alert.starts_at): (sight(alert), dumps(alert)) for alert in verdict.alerts}
        earlier = self._connection.execute(_ALERTS_SINCE, {**place, "start": min((final, *now))})
        before = {row.starts_at: row for row in earlier}
        gone = [start for start, row in before.items() if start >= final and start not in now and row.body != REMOVED]
        told = [start for start, (_, body) in now.items() if start not in before or before[start].body not in (body, REMOVED)]
        if gone:
            self._connection.execute(_ALERT_GONE, [{**place, "start": start} for start in gone])
        self._put(schema.alerts, [{**place, **_alert_row(*now[start])} for start in told])
        yield from (_sight(verdict.key, start, before[start].until) for start in (*gone, *told) if start in before)
        yield from (now[start][0] for start in told)

    def _put_blinds(self, blinds: Iterable[NotEvaluated]) -> None:
        said: dict[NotEvaluated, None] = {}
        for blind in blinds:
            if blind.what:
                said[blind] = None
                continue
            self._connection.execute(delete(schema.blinds).where(schema.blinds.c.scope == blind.scope))
            said = {other: None for other in said if other.scope != blind.scope}
        self._put(schema.blinds, [{"scope": b.scope, "what": b.what, "why": b.why} for b in said])

    def _put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(_upsert(table), rows)


@cache
def _upsert(table: Table) -> Insert:
    """Return the statement that puts rows into `table` or replaces those of the same key; a unique column stays as it was."""
    statement = insert(table)
    values = {c.name: statement.excluded[c.name] for c in table.columns if not (c.primary_key or c.unique)}
    keys = [c.name for c in table.primary_key]
    if values:
        return statement.on_conflict_do_update(index_elements=keys, set_=values)
    return statement.on_conflict_do_nothing(index_elements=keys)


def _incident_row(incident: Incident) -> dict[str, str | None]:
    when = extent(incident)
    return {
        "scope": incident.key[0],
        "status": incident.status,
        "body": dumps(incident),
        "rule": incident.rule,
        "changed_at": schema.text(datetime.now(UTC)),
        "first_seen": schema.text(incident.first_seen) if incident.first_seen else None,
        "until": schema.text(when[1]) if when else None,
    }


def _alert_row(when: AlertInterval, body: str) -> dict[str, str | None]:
    until = schema.text(when.until) if when.until else None
    return {"starts_at": schema.text(when.starts_at), "until": until, "body": body}


def _letter_id(letter: DeadLetter) -> str:
    place = letter.stage, letter.source_id, str(letter.offset), str(letter.number), letter.rule_id
    what = () if letter.source_id else (letter.text,)
    return hashlib.sha256("\0".join((*place, *what)).encode("utf-8", "replace")).hexdigest()[:16]


def _sight(key: AlertKey, starts_at: str, until: str | None) -> AlertInterval:
    return AlertInterval(key, datetime.fromisoformat(starts_at), datetime.fromisoformat(until) if until else None)


def key_text(key: AlertKey) -> str:
    """Return a key as it is kept in the column `key`: the scope stands beside it."""
    return f"{key[1]} {entity_text(key[2])}"


@lru_cache(maxsize=10_000)  # a batch writes of the same ones again and again
def entity_text(entity: tuple[tuple[str, str], ...]) -> str:
    """Return the entity of a key as it is kept in the column `entity`."""
    return json.dumps(entity, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=10_000)  # a batch looks at the same ones again and again
def _key(scope: str, rule: str, entity: str) -> AlertKey:
    return scope, rule, tuple((label, value) for label, value in json.loads(entity))
