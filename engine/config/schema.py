"""The schema of tocsin.yml, as pydantic models over text. Features that this version does not have are reported by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from engine.config.auditing import AuditEntry
from engine.config.connection import ConnectionEntry, EndpointEntry
from engine.config.faults import finding_error, validated_by
from engine.config.hours import IntervalEntry
from engine.config.kibana import KibanaEntry
from engine.config.monitoring import HeartbeatSection, MetricsSection
from engine.config.receivers import ReceiverEntry
from engine.config.redaction import RedactEntry
from engine.config.routing import RootEntry
from engine.config.secrets import SecretText
from engine.config.spark import SparkEntry
from engine.config.web import WebEntry
from engine.dsl.codes import Code
from engine.dsl.quantities import duration_s
from engine.dsl.report import did_you_mean
from engine.dsl.schema import Count, Duration, Flag, Severity, Strict, Text
from engine.dsl.structure import TAG
from engine.store_address import has_password, is_store_url

SOURCE_TYPES = ("files", "docker", "kubernetes", "journald", "kafka", "elasticsearch", "connect", "kafka-cluster")
READ_BY = ("sequence", "ingested", "timestamp")  # connectors/elasticsearch/facts, Strategy
LEAST_EVERY_S = 5.0  # between two rounds of questions


def _check_start(value: str) -> None:
    if value in ("earliest", "latest"):
        return
    try:
        duration_s(value)
    except ValueError:
        if datetime.fromisoformat(value).tzinfo is None:
            raise


def _check_speaker(value: str) -> None:
    if re.fullmatch(r"[a-z][a-z0-9-]*(?: \S+)?", value) is None:
        raise ValueError(value)


def _check_topic(value: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9._-]{1,249}", value) is None:  # Apache Kafka, Topic.LEGAL_CHARS
        raise ValueError(value)


def _check_reading(value: str) -> None:
    if value not in READ_BY:
        raise ValueError(value)


def _check_indices(value: str) -> None:
    if re.fullmatch(r"[^\s,/\\?\"<>|#A-Z]{1,255}", value) is None:  # Elasticsearch, create index API: names
        raise ValueError(value)


Start = Annotated[
    str,
    validated_by(
        _check_start,
        Code.BAD_START,
        "a start",
        "write earliest, latest, a duration back from now (1h), or 2022-10-05T17:00:00Z",
    ),
]
Topic = Annotated[
    str,
    validated_by(
        _check_topic, Code.BAD_OPTION, "the name of a topic", "letters, digits, `.`, `_` and `-`; patterns are not taken"
    ),
]
Indices = Annotated[
    str,
    validated_by(
        _check_indices,
        Code.BAD_OPTION,
        "the name of an index, alias or data stream, or a pattern of them",
        "for example: logs-kafka-*, one for each entry of the list; names are in lower case",
    ),
]
ReadBy = Annotated[
    str,
    validated_by(
        _check_reading,
        Code.BAD_OPTION,
        "a way to read",
        "write sequence, ingested or timestamp; without it, the safest that is possible is taken",
    ),
]
Timezone = Annotated[
    str, validated_by(ZoneInfo, Code.BAD_TIMEZONE, "a time zone", "for example: Asia/Seoul, Europe/Berlin, UTC")
]


def _check_time(value: str) -> None:
    datetime.fromisoformat(value)


Moment = Annotated[
    str, validated_by(_check_time, Code.BAD_START, "a day or a time", "write for example 1990-01-01 or 2022-10-05T17:00:00Z")
]


class StampsEntry(Strict):
    """the bounds of plausible timestamps of a source; defaults are those of engine/parse/stamps"""

    earliest: Moment | None = None
    ahead: Duration | None = None


Speaker = Annotated[
    str,
    validated_by(
        _check_speaker,
        Code.BAD_LABEL,
        "a process to speak for",
        "write a component (broker), one of its members (broker 1), or an empty list",
    ),
]


class SourceEntry(Strict):
    """a source: the keys that every type has"""

    type: str
    labels: Mapping[str, str] = {}
    timezone: Timezone = "UTC"
    stamps: StampsEntry = StampsEntry()
    may_speak_for: list[Speaker] | None = None
    start: Start | None = None


class FilesEntry(SourceEntry):
    """a source of type files"""

    paths: list[Text] = Field(min_length=1)


class KafkaEntry(SourceEntry):
    """a source of type kafka"""

    bootstrap_servers: Text
    topics: list[Topic] = Field(min_length=1)
    options: Mapping[str, str] = {}


class ElasticsearchSourceEntry(SourceEntry, ConnectionEntry):
    """a source of type elasticsearch"""

    indices: list[Indices] = Field(min_length=1)
    query: Mapping[str, Any] | None = None
    read_by: ReadBy | None = None
    overlap: Duration | None = None


def _check_every(value: float) -> float:
    if value < LEAST_EVERY_S:
        raise finding_error(
            Code.BAD_OPTION, f"asking more often than every {LEAST_EVERY_S:.0f} s is a load", "for example: every: 30s"
        )
    return value


class AskedEntry(SourceEntry):
    """a source that asks a server about its state: the keys that all of these have"""

    every: Annotated[Duration, AfterValidator(_check_every)] = 30.0
    record: Text | None = None

    @model_validator(mode="after")
    def _has_no_past(self) -> AskedEntry:
        if self.start is not None:
            help = "leave `start` out: a server is asked about the present only"
            raise finding_error(Code.BAD_START, f"a source of type {self.type} has no past to start in", help)
        return self


class ConnectSourceEntry(AskedEntry, EndpointEntry):
    """a source of type connect"""


class ClusterSourceEntry(AskedEntry):
    """a source of type kafka-cluster"""

    bootstrap_servers: Text
    options: Mapping[str, str] = {}


class LocalEntry(SourceEntry):
    """a source that finds the logs of this machine by itself: the keys that docker, kubernetes and journald have"""

    root: Text | None = None
    containers: list[Text] = Field(default=[])


class DockerEntry(LocalEntry):
    """a source of type docker"""

    images: list[Text] = Field(default=[])
    projects: list[Text] = Field(default=[])
    services: list[Text] = Field(default=[])


class KubernetesEntry(LocalEntry):
    """a source of type kubernetes"""

    namespaces: list[Text] = Field(default=[])
    pods: list[Text] = Field(default=[])


class JournaldEntry(LocalEntry):
    """a source of type journald"""

    units: list[Text] = Field(default=[])


SELECTING = {  # the key of a configuration, and the label whose patterns it lists
    "containers": "container",
    "images": "image",
    "projects": "compose_project",
    "services": "compose_service",
    "namespaces": "namespace",
    "pods": "pod",
    "units": "unit",
}


def _known_type(value: Any) -> Any:
    type_ = _type_of(value)
    if type_ not in SOURCE_TYPES:
        raise finding_error(Code.NOT_ONE_OF, f"`{type_}` is not a type of source", did_you_mean(str(type_), SOURCE_TYPES))
    return value


def _type_of(value: Any) -> Any:
    if isinstance(value, SourceEntry):
        return value.type
    return value.get("type", "files") if isinstance(value, dict) else "files"


TaggedSourceEntry = Annotated[
    Annotated[FilesEntry, Tag(f"{TAG}files")]
    | Annotated[DockerEntry, Tag(f"{TAG}docker")]
    | Annotated[KubernetesEntry, Tag(f"{TAG}kubernetes")]
    | Annotated[JournaldEntry, Tag(f"{TAG}journald")]
    | Annotated[KafkaEntry, Tag(f"{TAG}kafka")]
    | Annotated[ElasticsearchSourceEntry, Tag(f"{TAG}elasticsearch")]
    | Annotated[ConnectSourceEntry, Tag(f"{TAG}connect")]
    | Annotated[ClusterSourceEntry, Tag(f"{TAG}kafka-cluster")],
    Discriminator(lambda value: f"{TAG}{_type_of(value)}"),
    BeforeValidator(_known_type),
]


def _store_url(value: Any) -> Any:
    help = "write sqlite:///path/to/tocsin.db, or postgresql+psycopg://user@host:5432/database"
    if not isinstance(value, str):
        raise finding_error(Code.BAD_STORE, "must be the address of a store", help)
    if has_password(value):
        help = "take it out, put it into an environment variable or a file, and write {url: ..., password: env:NAME}"
        raise finding_error(Code.BAD_SECRET, "must not hold the password itself", help)
    if not is_store_url(value):
        raise finding_error(Code.BAD_STORE, f"`{value}` is not the address of a store", help)
    return value


class StoreEntry(Strict):
    """the incident store: its address, and the reference to its password"""

    url: Annotated[Text, BeforeValidator(_store_url, json_schema_input_type=str)]
    password: SecretText | None = None

    @model_validator(mode="before")
    @classmethod
    def _password_has_a_server(cls, value: Any) -> Any:
        if isinstance(value, dict) and "password" in value and str(value.get("url")).startswith("sqlite"):
            raise finding_error(Code.BAD_STORE, "a file has no password", "leave `password` out")
        return value


StoreSetting = Annotated[
    StoreEntry,
    BeforeValidator(lambda value: {"url": value} if isinstance(value, str) else value, json_schema_input_type=str | StoreEntry),
]


class ClusterEntry(Strict):
    """a cluster: the brokers that are expected to print, and values for fixes"""

    also_called: ClassVar[Mapping[str, str]] = {"roster": "brokers"}

    brokers: list[Count] = Field(default=[])
    bootstrap: str = ""
    connect_url: str = ""


class OverrideEntry(Strict):
    """an override of a shipped rule"""

    disabled: Flag = False
    severity: Severity | None = None
    labels: Mapping[str, str] = {}
    except_: Any = Field(default=None, alias="except")
    unless: Text | None = None


class ConfigFile(Strict):
    """tocsin.yml"""

    clusters: Mapping[str, ClusterEntry] = {}
    sources: list[TaggedSourceEntry] = Field(min_length=1)
    rules: list[Text] = Field(default=["builtin"])
    overrides: Mapping[str, OverrideEntry] = {}
    audit: AuditEntry = AuditEntry()
    route: RootEntry | None = None
    time_intervals: list[IntervalEntry] = Field(default=[])
    notify_max_age: Duration | None = None
    notify_storm: Count = 5
    receivers: list[ReceiverEntry] = Field(default=[])
    store: StoreSetting = StoreEntry(url="sqlite:///./.tocsin/tocsin.db")
    retention: Duration = 90 * 86400.0
    redact: RedactEntry = RedactEntry()
    spark: SparkEntry = SparkEntry()
    web: WebEntry = WebEntry()
    kibana: KibanaEntry | None = None
    metrics: MetricsSection | None = None
    heartbeat: HeartbeatSection | None = None
