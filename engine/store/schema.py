"""The tables of the incident store.

Rows hold the model's JSON (engine/codec) in `body`, and beside it only the columns that are searched by; so a new field of the
model needs no migration. Times are ISO 8601 UTC text, which sorts as time does.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text

SCHEMA_VERSION = 6

metadata = MetaData()

meta = Table("meta", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

batches = Table(
    "batches",
    metadata,
    Column("query", Text, primary_key=True),
    Column("batch", Integer, primary_key=True),
    Column("plan", Text, nullable=False),
    Column("at", Text, nullable=False),
    comment="micro-batches whose findings are in",
)

alerts = Table(
    "alerts",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("entity", Text, primary_key=True),
    Column("starts_at", Text, primary_key=True),
    Column("until", Text),
    Column("body", Text, nullable=False),
    Index("alerts_by_end", "scope", "until"),
    comment="what rules say of entities; an empty body stands for one that was removed for its age, and never comes back",
)

evidence = Table("evidence", metadata, Column("event_id", Text, primary_key=True), Column("body", Text, nullable=False))

rosters = Table("rosters", metadata, Column("scope", Text, primary_key=True), Column("body", Text, nullable=False))

blinds = Table(
    "blinds",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("what", Text, primary_key=True),
    Column("why", Text, primary_key=True),
)

losses = Table(
    "losses",
    metadata,
    Column("source", Text, primary_key=True),
    Column("lost_from", Integer, primary_key=True),
    Column("lost_to", Integer, primary_key=True),
    Column("why", Text, nullable=False),
    comment="lines that were gone before they were read",
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("quarantine_by_time", "at"),
    comment="dead letters: what a stage raised on; the newest only",
)

revisions = Table(
    "revisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    comment="what an incident was at each revision: append-only",
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", Text, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),  # order of opening
    Column("scope", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("changed_at", Text, nullable=False),  # by this machine's clock
    Column("first_seen", Text),
    Column("until", Text),  # the last time it is known to have gone on
    Index("incidents_by_scope", "scope", "number"),
    Index("incidents_by_change", "changed_at"),
    comment="the last revision of each",
)

told = Table(
    "told",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("incident", Text, primary_key=True),
    Index("told_by_incident", "incident"),
    comment="the keys of the alerts that an incident told of at any of its revisions: append-only",
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("receiver", Text, primary_key=True),
    Column("incident", Text, primary_key=True),
    Column("body", Text, nullable=False),
    comment="what a receiver was last told of an incident",
)

outbox = Table(
    "outbox",
    metadata,
    Column("receiver", Text, primary_key=True),
    Column("incident", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("due_at", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("outbox_by_state", "state", "due_at"),
    comment="what is to be sent, or was sent last: one entry for a receiver and an incident",
)

attempts = Table(
    "attempts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("receiver", Text, nullable=False),
    Column("incident", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("why", Text, nullable=False),
    Index("attempts_by_incident", "incident", "number"),
    comment="every attempt to tell somebody, why and how it went: append-only",
)

silences = Table(
    "silences",
    metadata,
    Column("id", Text, primary_key=True),
    Column("ends_at", Text, nullable=False),
    Column("body", Text, nullable=False),
    comment="who asked not to be told of what, and until when",
)


def text(at: datetime) -> str:
    """Return a time as it is kept: all of one length, so that text sorts as time does."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
