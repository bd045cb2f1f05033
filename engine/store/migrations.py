"""The store's schema version, and the steps from each version to the next.

A step is plain SQL, so that it does the same after the tables of schema.py have changed. All steps of an opening run in one
transaction, so a store has one version or another, never something in between. A store in PostgreSQL is never older than
FIRST_IN_POSTGRESQL: later steps run in both databases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, inspect, select, update

from engine.errors import StoreError
from engine.store import schema
from engine.store.databases import index_text

FIRST_IN_POSTGRESQL = 9
Statement = str | Mapping[str, str]  # for every database, or one by dialect

# statements that bring a store from the version to the next one
STEPS: Mapping[int, Sequence[Statement]] = {
    1: (
        "CREATE TABLE outbox (receiver TEXT NOT NULL, incident TEXT NOT NULL, state TEXT NOT NULL, due_at TEXT NOT NULL,"
        " body TEXT NOT NULL, PRIMARY KEY (receiver, incident))",
        "CREATE INDEX outbox_by_state ON outbox (state, due_at)",
        "CREATE TABLE attempts (number INTEGER NOT NULL PRIMARY KEY, receiver TEXT NOT NULL, incident TEXT NOT NULL,"
        " revision INTEGER NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL, outcome TEXT NOT NULL, why TEXT NOT NULL)",
        "CREATE INDEX attempts_by_incident ON attempts (incident, number)",
        "UPDATE deliveries SET body = json_set(body, '$.at', strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'))",
        "CREATE TABLE silences (id TEXT NOT NULL PRIMARY KEY, ends_at TEXT NOT NULL, body TEXT NOT NULL)",
    ),
    2: (
        "CREATE TABLE alerts (scope TEXT NOT NULL, rule TEXT NOT NULL, entity TEXT NOT NULL, starts_at TEXT NOT NULL,"
        " until TEXT, body TEXT NOT NULL, PRIMARY KEY (scope, rule, entity, starts_at))",
        "INSERT OR REPLACE INTO alerts SELECT scope, rule, entity, json_extract(each.value, '$.starts_at'), CASE"
        " json_extract(each.value, '$.dated') WHEN 1 THEN coalesce(max(json_extract(each.value, '$.ends_at'),"
        " json_extract(each.value, '$.last_seen')), '9999-12-31T23:59:59.999999+00:00') END, each.value"
        " FROM verdicts, json_each(verdicts.body, '$.alerts') AS each",
        "UPDATE alerts SET starts_at = replace(starts_at, '+', '.000000+') WHERE length(starts_at) = 25",
        "UPDATE alerts SET until = replace(until, '+', '.000000+') WHERE length(until) = 25",
        "DROP TABLE verdicts",
        "ALTER TABLE incidents ADD COLUMN rule TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE incidents ADD COLUMN changed_at TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE incidents ADD COLUMN first_seen TEXT",
        "UPDATE incidents SET first_seen = json_extract(body, '$.first_seen')",
        "UPDATE incidents SET first_seen = replace(first_seen, '+', '.000000+') WHERE length(first_seen) = 25",
        "UPDATE incidents SET rule = json_extract(body, '$.rule'), changed_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')",
        "CREATE INDEX incidents_by_rule ON incidents (scope, rule)",
        "CREATE INDEX incidents_by_change ON incidents (changed_at)",
        "ALTER TABLE batches ADD COLUMN at TEXT NOT NULL DEFAULT ''",
        "UPDATE batches SET at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')",
    ),
    3: (
        "CREATE INDEX alerts_by_end ON alerts (scope, until)",
        'CREATE TABLE told (scope TEXT NOT NULL, "key" TEXT NOT NULL, incident TEXT NOT NULL,'
        ' PRIMARY KEY (scope, "key", incident))',
        "CREATE INDEX told_by_incident ON told (incident)",
        "INSERT OR IGNORE INTO told SELECT scope, json_extract(each.value, '$[1]') || ' ' || json_extract(each.value, '$[2]'),"
        " incidents.id FROM incidents, json_each(body, '$.alerts') AS each",
        "ALTER TABLE incidents ADD COLUMN until TEXT",
        "DROP INDEX incidents_by_rule",
    ),
    4: (
        "CREATE TABLE quarantine (id TEXT NOT NULL PRIMARY KEY, at TEXT NOT NULL, body TEXT NOT NULL)",
        "CREATE INDEX quarantine_by_time ON quarantine (at)",
    ),
    5: (
        "ALTER TABLE losses RENAME TO former_losses",
        "CREATE TABLE losses (source TEXT NOT NULL, lost_from INTEGER NOT NULL, lost_to INTEGER NOT NULL, why TEXT NOT NULL,"
        " PRIMARY KEY (source, lost_from, lost_to))",
        "INSERT INTO losses SELECT source, lost_from, lost_to, why FROM former_losses",
        "DROP TABLE former_losses",
    ),
    6: (
        "ALTER TABLE incidents ADD COLUMN state TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE incidents ADD COLUMN severity TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE incidents ADD COLUMN component TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE incidents ADD COLUMN seen TEXT NOT NULL DEFAULT ''",
        "UPDATE incidents SET severity = json_extract(body, '$.severity'), component = json_extract(body, '$.component'),"
        " state = CASE WHEN json_extract(body, '$.pending') THEN 'pending' ELSE status END,"
        " seen = coalesce(json_extract(body, '$.last_seen'), '')",
        "UPDATE incidents SET seen = replace(seen, 'Z', '+00:00')",
        "UPDATE incidents SET seen = replace(seen, '+', '.000000+') WHERE length(seen) = 25",
        "CREATE INDEX incidents_listed ON incidents (state, severity, seen, component, scope, rule, first_seen, until, id)",
        "CREATE TABLE searchable (incident TEXT NOT NULL PRIMARY KEY, labels TEXT NOT NULL, text TEXT NOT NULL)",
        "INSERT INTO searchable SELECT id, json_extract(body, '$.labels'), lower(json_extract(body, '$.title') || char(10)"
        " || json_extract(body, '$.cause') || char(10) || rule || char(10) || json_extract(body, '$.labels') || char(10)"
        " || coalesce((SELECT group_concat(json_extract(each.value, '$.text'), char(10))"
        " FROM json_each(body, '$.evidence') AS each), '')) FROM incidents",
    ),
    7: (
        "ALTER TABLE revisions ADD COLUMN position BIGINT NOT NULL DEFAULT 0",
        "UPDATE revisions SET position = rowid",
        "CREATE UNIQUE INDEX ix_revisions_position ON revisions (position)",
        "ALTER TABLE incidents ADD COLUMN merged_into TEXT",
        "UPDATE incidents SET merged_into = json_extract(body, '$.merged_into')",
        "CREATE INDEX incidents_by_merge ON incidents (merged_into)",
        "CREATE TABLE incident_labels (incident TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
        " PRIMARY KEY (incident, name))",
        "INSERT INTO incident_labels SELECT incident, each.key, each.value FROM searchable, json_each(labels) AS each",
        "ALTER TABLE searchable DROP COLUMN labels",
        "UPDATE alerts SET entity = tocsin_key(entity)",
        'UPDATE told SET "key" = substr("key", 1, instr("key", \' \')) || tocsin_key(substr("key", instr("key", \' \') + 1))',
        "UPDATE losses SET source = tocsin_key(source)",
        "CREATE TABLE alert_evidence (event_id TEXT NOT NULL, scope TEXT NOT NULL, rule TEXT NOT NULL, entity TEXT NOT NULL,"
        " starts_at TEXT NOT NULL, PRIMARY KEY (event_id, scope, rule, entity, starts_at))",
        "INSERT OR IGNORE INTO alert_evidence SELECT each.value, scope, rule, entity, starts_at FROM alerts,"
        " json_each(nullif(body, ''), '$.evidence') AS each",
        "ALTER TABLE blinds RENAME TO former_blinds",
        "CREATE TABLE blinds (id TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL)",
        "INSERT INTO blinds SELECT tocsin_digest(scope, what, why), scope, what, why FROM former_blinds",
        "DROP TABLE former_blinds",
        "CREATE INDEX blinds_by_scope ON blinds (scope)",
        "CREATE TABLE leases (name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, token BIGINT NOT NULL,"
        " until_s DOUBLE PRECISION NOT NULL)",
    ),
    8: (
        "ALTER TABLE incidents ADD COLUMN began TEXT NOT NULL DEFAULT ''",
        'ALTER TABLE incidents ADD COLUMN "count" BIGINT NOT NULL DEFAULT 0',
        "UPDATE incidents SET \"count\" = coalesce(json_extract(body, '$.count'), 0), began = coalesce((SELECT"
        " max(json_extract(each.value, CASE json_extract(each.value, '$[12]') WHEN 1 THEN '$[4]' ELSE '$[5]' END))"
        " FROM json_each(body, '$.course') AS each WHERE json_extract(each.value, '$[0]') = 'root'), first_seen, '')",
        "UPDATE incidents SET began = replace(began, 'Z', '+00:00')",
        "UPDATE incidents SET began = replace(began, '+', '.000000+') WHERE length(began) = 25",
        "DROP INDEX incidents_listed",
        "CREATE INDEX incidents_listed ON incidents (state, severity, seen, component, scope, rule, first_seen, until, began,"
        ' "count", id)',
        'CREATE TABLE acts (number INTEGER NOT NULL PRIMARY KEY, "key" TEXT NOT NULL UNIQUE, incident TEXT NOT NULL,'
        " kind TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL)",
        "CREATE INDEX acts_by_incident ON acts (incident, number)",
        "CREATE TABLE handlings (incident TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, until_seen TEXT NOT NULL,"
        ' "count" BIGINT NOT NULL, body TEXT NOT NULL)',
    ),
    9: (
        "CREATE INDEX incidents_by_rule ON incidents (rule, number, state, scope, id)",
        "CREATE TABLE facts (scope TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, at TEXT NOT NULL,"
        " body TEXT NOT NULL, PRIMARY KEY (scope, kind, name, at))",
        "CREATE INDEX facts_by_time ON facts (scope, at)",
    ),
}


def is_up_to_date(connection: Connection) -> bool:
    """Return whether the store has the tables of this version."""
    return _stored_version(connection) == str(schema.SCHEMA_VERSION)


def bring_up_to_date(connection: Connection) -> None:
    """Create the tables of an empty store, or bring those of an older version up to date.

    Raises StoreError for a store of a newer version, or of one that is too old for the steps.
    """
    stored = _stored_version(connection)
    if stored is None:
        schema.metadata.create_all(connection, checkfirst=False)
        index_text(connection, schema.searchable.c.text, "searchable_by_part")
        connection.execute(insert(schema.meta).values(name="schema", value=str(schema.SCHEMA_VERSION)))
        return
    version = int(stored) if stored.isdigit() else 0
    oldest = FIRST_IN_POSTGRESQL if connection.dialect.name == "postgresql" else min(STEPS)
    if version < oldest or version not in (*STEPS, schema.SCHEMA_VERSION):
        raise StoreError(
            f"{connection.engine.url}: written by another version of tocsin (schema {stored}, this one is"
            f" {schema.SCHEMA_VERSION}); use that version, or another store"
        )
    _step_up(connection, version)


def _stored_version(connection: Connection) -> str | None:
    """Return the version of a store, empty when it has none; None for a store without tables."""
    if not inspect(connection).has_table(schema.meta.name):
        return None
    return connection.scalar(select(schema.meta.c.value).filter_by(name="schema")) or ""


def _step_up(connection: Connection, version: int) -> None:
    if version == schema.SCHEMA_VERSION:
        return
    dialect = connection.dialect.name
    if dialect == "sqlite":
        driver_connection: Any = connection.connection.driver_connection
        driver_connection.create_function("tocsin_key", 1, schema.key_of, deterministic=True)
        driver_connection.create_function("tocsin_digest", -1, schema.digest, deterministic=True)
    for step in range(version, schema.SCHEMA_VERSION):
        for statement in STEPS[step]:
            connection.exec_driver_sql(statement if isinstance(statement, str) else statement[dialect])
    connection.execute(update(schema.meta).filter_by(name="schema").values(value=str(schema.SCHEMA_VERSION)))
