"""The tables of the incident store.

Rows hold the model's JSON (engine/codec) in `body`, and otherwise only the columns that queries search by; so a new field of
the model needs no migration. Times are ISO 8601 text in UTC, which sorts by time.

The tables are the same in every database. A text that comes from logs and is part of a key is stored by `key_of`: a key of
PostgreSQL has at most 2,704 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table

from engine.store.databases import CleanText as Text

SCHEMA_VERSION = 10
KEY_BYTES = 1000
EXPLAINED = "explained rules"  # the name of their row in meta
LONG_KEY = "#"  # what the key of a text that is longer than KEY_BYTES begins with

_COUNTED_UP = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up integers only
_AT_ONCE = 500  # bound parameters of one statement

metadata = MetaData()

meta = Table("meta", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

batches = Table(
    "batches",
    metadata,
    Column("query", Text, primary_key=True),
    Column("batch", BigInteger, primary_key=True),
    Column("plan", Text, nullable=False),
    Column("at", Text, nullable=False),
    comment="batches whose findings are stored",
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
    comment="alerts by rule and entity; one with an empty body was removed for its age and never comes back",
)

alert_evidence = Table(
    "alert_evidence",
    metadata,
    Column("event_id", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("entity", Text, primary_key=True),
    Column("starts_at", Text, primary_key=True),
    comment="the events that an alert had as evidence at any time; a row stays as long as the event",
)

evidence = Table("evidence", metadata, Column("event_id", Text, primary_key=True), Column("body", Text, nullable=False))

rosters = Table("rosters", metadata, Column("scope", Text, primary_key=True), Column("body", Text, nullable=False))

blinds = Table(
    "blinds",
    metadata,
    Column("id", Text, primary_key=True),  # of scope, what and why
    Column("scope", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("why", Text, nullable=False),
    Index("blinds_by_scope", "scope"),
)

facts = Table(
    "facts",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("at", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Index("facts_by_time", "scope", "at"),
    comment="what servers stated when they were asked, until the next row about the same thing",
)

losses = Table(
    "losses",
    metadata,
    Column("source", Text, primary_key=True),
    Column("lost_from", BigInteger, primary_key=True),
    Column("lost_to", BigInteger, primary_key=True),
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
    comment="dead letters: input that a stage failed on; the newest only",
)

revisions = Table(
    "revisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    Column("position", BigInteger, nullable=False, index=True, unique=True),  # in the order of commits
    comment="every revision of every incident: append-only",
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", Text, primary_key=True),
    Column("number", BigInteger, nullable=False, unique=True),  # order of opening
    Column("scope", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("changed_at", Text, nullable=False),  # by this machine's clock
    Column("first_seen", Text),
    Column("until", Text),  # the last event time at which it lasted; NULL when its lines bear no time
    Column("state", Text, nullable=False),  # the status; `pending` while it waits to be confirmed
    Column("severity", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("seen", Text, nullable=False),  # when it was last seen; empty when its lines bear no time
    Column("merged_into", Text),  # the incident that it became a part of
    Index("incidents_by_merge", "merged_into"),
    Column("began", Text, nullable=False),  # when the last firing of its root began; empty when its lines bear no time
    Column("count", BigInteger, nullable=False),
    Index("incidents_by_scope", "scope", "number"),
    Index("incidents_by_change", "changed_at"),
    # whatever a list selects, orders and counts by, so that it need not read bodies
    Index(
        "incidents_listed",
        *("state", "severity", "seen", "component", "scope", "rule", "first_seen", "until", "began", "count", "id"),
    ),
    # earlier incidents of a rule are chosen without reading bodies
    Index("incidents_by_rule", "rule", "number", "state", "scope", "id"),
    comment="the last revision of every incident",
)

searchable = Table(
    "searchable",
    metadata,
    Column("incident", Text, primary_key=True),
    Column("text", Text, nullable=False),  # in lower case
    comment="what lists are searched by: labels, title, cause, rule and evidence",
)

incident_labels = Table(
    "incident_labels",
    metadata,
    Column("incident", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    comment="the labels of the last revision of an incident",
)

incident_keys = Table(
    "told",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("incident", Text, primary_key=True),
    Index("told_by_incident", "incident"),
    comment="the keys of the alerts that an incident had at any of its revisions: append-only",
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("receiver", Text, primary_key=True),
    Column("incident", Text, primary_key=True),
    Column("body", Text, nullable=False),
    comment="notification logs: what a receiver was last sent about an incident",
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
    comment="deliveries to be sent or sent last: one for a receiver and an incident",
)

attempts = Table(
    "attempts",
    metadata,
    Column("number", _COUNTED_UP, primary_key=True),
    Column("receiver", Text, nullable=False),
    Column("incident", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("why", Text, nullable=False),
    Index("attempts_by_incident", "incident", "number"),
    comment="every attempt to notify a receiver, with reason and outcome: append-only",
)

silences = Table(
    "silences",
    metadata,
    Column("id", Text, primary_key=True),
    Column("ends_at", Text, nullable=False),
    Column("body", Text, nullable=False),
    comment="silences: no notifications about matching incidents until the end",
)

acts = Table(
    "acts",
    metadata,
    Column("number", _COUNTED_UP, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("incident", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("acts_by_incident", "incident", "number"),
    comment="what people did about incidents: append-only, and never written by the job",
)

handlings = Table(
    "handlings",
    metadata,
    Column("incident", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("until_seen", Text, nullable=False),  # the state holds for what was seen until then; empty: see count
    Column("count", BigInteger, nullable=False),  # ... or counted, where lines bear no time
    Column("body", Text, nullable=False),
    comment="the result of the acts on an incident, written with each of them",
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("until_s", Double, nullable=False),  # since 1970, by the clock of the database
    comment="which process does a kind of work with this store, and until when unless it says again that it does",
)


def in_chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield `values` in order, in as many at a time as one statement may have bound parameters for."""
    yield from (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))


def text(at: datetime) -> str:
    """Return a time as stored: in UTC with microseconds, always of the same length, so that text sorts by time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def key_of(text: str) -> str:
    """Return `text` as it is stored in a key: itself, or, when it is longer than KEY_BYTES, LONG_KEY with a digest and the
    beginning of the text."""
    if len(text) <= KEY_BYTES // 4 or len(data := text.encode("utf-8", "replace")) <= KEY_BYTES:
        return text
    prefix = f"{LONG_KEY}{sha256(data).hexdigest()[:32]} "
    return prefix + data[: KEY_BYTES - len(prefix)].decode("utf-8", "ignore")


def digest(*parts: str) -> str:
    """Return a key of fixed length for a sequence of texts."""
    return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]
