"""Load tocsin.yml into frozen settings. Relative paths in it are relative to its own folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct, field
from msgspec.structs import replace

from engine.config.auditing import accepted_risks
from engine.config.connection import connection_of, endpoint_of
from engine.config.hours import interval_of
from engine.config.kibana import kibana_of, pattern_of
from engine.config.monitoring import HeartbeatSettings, MetricsSettings, heartbeat_settings, metrics_settings
from engine.config.overriding import override
from engine.config.receivers import ReceiverSettings, TerminalSettings, default_receiver, receiver_settings
from engine.config.redaction import redaction_of
from engine.config.routing import interval_references, receiver_references, route_tree
from engine.config.schema import (
    SELECTING,
    ClusterEntry,
    ClusterSourceEntry,
    ConfigFile,
    ConnectSourceEntry,
    ElasticsearchSourceEntry,
    FilesEntry,
    KafkaEntry,
    LocalEntry,
    SourceEntry,
    StoreEntry,
)
from engine.config.secrets import placed, placed_address, without_secrets
from engine.config.spark import checkpoint_url, folder_of_run
from engine.config.web import WebSettings, web_settings
from engine.dsl import Override
from engine.dsl.codes import Code
from engine.dsl.document import RuleDocument
from engine.dsl.reader import read
from engine.dsl.report import Report
from engine.dsl.structure import check
from engine.errors import ConfigError, UsageError
from engine.model.diagnostics import Diagnostic, Level
from engine.model.links import ESQL, LinkTargets
from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, NOBODY, SPEAKS_FOR, TIMEZONE_LABEL, Labels
from engine.model.redaction import Redaction
from engine.model.routes import Route
from engine.model.rules import SIGNS_IN
from engine.model.words import ENGLISH
from engine.risks.judging import AcceptedRisk
from engine.secrets import Secret
from engine.store_address import StoreAddress

BUILTIN = "builtin"
TERMINAL = "terminal"
DEFAULT_STORE = ".tocsin/tocsin.db"
STATE_DIR = "TOCSIN_STATE_DIR"  # the variable with the folder of state whose place is not configured; an image sets it
DEFAULT_SCOPE = "default"
_NO_PATH = ["\0"]  # stands for the sources of a file that has none without errors

LabelCheck = Callable[[str], str | None]  # the template of a label -> error message; None: valid
OptionCheck = Callable[[str, str], str | None]  # name and value of an option -> error message; None: valid


class SourceSettings(Struct, frozen=True):
    """One source. `start` None: the command decides. `labels` include those that change how timestamps are read.

    `paths` belong to type files; `bootstrap_servers`, `topics` and `options` to type kafka; `connection` (the fields of an
    ElasticsearchConnection), `indices`, `query`, `read_by` and `overlap_s` to type elasticsearch; `root` (empty:
    the usual place) and `select` (patterns by label) to the types docker, kubernetes and journald; `connection` (the fields of
    a ConnectEndpoint), `every_s` and `record` (a path; empty: none) to type connect; `connection` (the fields of a
    KafkaEndpoint), `every_s` and `record` to type kafka-cluster.
    """

    type: str
    paths: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    start: str | None = None
    bootstrap_servers: str = ""
    topics: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    connection: Mapping[str, Any] = field(default_factory=dict)
    indices: tuple[str, ...] = ()
    query: Mapping[str, Any] | None = None
    read_by: str = ""
    overlap_s: float | None = None
    root: str = ""
    select: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    every_s: float = 0.0
    record: str = ""

    @property
    def scope(self) -> str:
        """The scope in which the source's lines are correlated: its cluster."""
        return self.labels.get("cluster", DEFAULT_SCOPE)


def _no_error(*_: str) -> str | None:
    return None


class Checks(Struct, frozen=True):
    """The checks that the connectors supply: of label templates and of options, by type of source."""

    labels: Mapping[str, LabelCheck] = field(default_factory=dict)
    options: Mapping[str, OptionCheck] = field(default_factory=dict)


NO_CHECKS = Checks()


class Settings(Struct, frozen=True):
    """The settings of tocsin.yml. None in `rules` stands for the shipped rules; `route` refers to `receivers` only."""

    sources: tuple[SourceSettings, ...]
    rules: tuple[Path | None, ...]
    overrides: Mapping[str, Override]
    accepted_risks: tuple[AcceptedRisk, ...]  # of `tocsin audit`
    audit_digest: tuple[str, int] | None  # the receiver of the digest of risks, and the minute of the day in UTC
    context: Mapping[str, str]  # `<cluster>.bootstrap`, `.connect_url`, `.brokers` (a comma list), `.signs_in`
    route: Route
    notify_storm: int  # the largest number of new incidents of one rule or cluster in a minute with a message each; 0: no limit
    notify_max_age_s: float | None  # None: the command decides; 0: no limit
    receivers: tuple[ReceiverSettings, ...]
    fallbacks: Mapping[str, str]  # receiver -> the one that is notified when it refuses; without circles
    languages: Mapping[str, str]  # receiver -> its language, of those that do not get English
    plan_languages: tuple[str, ...]  # all of these languages and that of the pages, without English, sorted
    store: StoreAddress
    retention_s: float  # how long incidents are stored after they are over; 0: for ever
    redaction: Redaction
    checkpoint: Path  # the folder of the run on this machine, and of the checkpoint unless there is a `checkpoint_url`
    checkpoint_url: str
    master: str | None
    conf: Mapping[str, str | Secret]
    cores: int
    partitions: int | None  # None: chosen by the master
    parallelism: int | None  # None: chosen by the master
    heap: str
    trigger_s: float
    batch_lines: int
    batch_bytes: int | None  # None: no bound
    audited: bool  # whether some of the input is read by the reference too
    web: WebSettings
    metrics: MetricsSettings | None
    heartbeat: HeartbeatSettings | None
    links: LinkTargets  # targets of the links in messages and on pages of incidents


class Examination(Struct, frozen=True):
    """A configuration with everything that is wrong in it.

    Attributes:
        settings: those of the parts without errors; None when nothing of the file can be used.
        whole_sources: whether `settings` has every source of the file.
        report: the errors so far; later checks add to it. Its lines may hold secrets (see `findings`).
    """

    settings: Settings | None
    whole_sources: bool
    document: RuleDocument
    report: Report

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return all findings by place in the file, without secrets."""
        return tuple(_without_secrets(finding) for finding in self.report.all())


def load(path: Path, checks: Checks = NO_CHECKS) -> Settings:
    """Load the settings in `path`.

    Raises UsageError when the file cannot be read, and ConfigError with every finding when it has errors.
    """
    examination = examine(path, checks)
    errors = [finding for finding in examination.findings() if finding.level is Level.ERROR]
    if errors or examination.settings is None:
        raise ConfigError(errors)
    return examination.settings


def examine(path: Path, checks: Checks = NO_CHECKS) -> Examination:
    """Return the settings in `path` as far as they are right, and all errors.

    Raises UsageError when the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the configuration cannot be read ({error.strerror}); name one with -c FILE") from None
    document, report = read(str(path), data)
    if report.all():
        return Examination(None, False, document, report)
    config = check(document, report, ConfigFile, {"sources": [{"type": "files", "paths": _NO_PATH}]})
    if config is None:
        return Examination(None, False, document, report)
    _check_references(config, document, report, checks)
    overrides = {rule: override(rule, entry, document, report) for rule, entry in config.overrides.items()}
    settings = _settings(config, path.parent, overrides)
    is_missing = [source.paths for source in config.sources if isinstance(source, FilesEntry)] == [_NO_PATH]
    if is_missing:
        settings = replace(settings, sources=())
    whole = not is_missing and document.whole(("sources",), settings.sources)
    return Examination(settings, whole, document, report)


def _without_secrets(finding: Diagnostic) -> Diagnostic:
    return replace(finding, source_line=without_secrets(finding.source_line))


def _check_references(config: ConfigFile, document: RuleDocument, report: Report, checks: Checks) -> None:
    """Report errors that take more than one key to detect."""
    _check_receivers(config, document, report)
    _check_intervals(config, document, report)
    _check_kibana(config, document, report)
    for index, source in enumerate(config.sources):
        label_check = checks.labels.get(source.type, _no_error)
        for name, template in source.labels.items():
            error = _cluster_error(name, template) or label_check(template)
            if error:
                report.add(Code.BAD_LABEL, document.find(("sources", index, "labels", name)), error)
        option_check = checks.options.get(source.type, _no_error)
        for name, value in source.options.items() if isinstance(source, KafkaEntry | ClusterSourceEntry) else ():
            if error := option_check(name, value):
                report.add(Code.BAD_OPTION, document.find(("sources", index, "options", name)), error)


def _check_kibana(config: ConfigFile, document: RuleDocument, report: Report) -> None:
    entry, read = config.kibana, _indices_read(config)
    if entry is None:
        return
    if not pattern_of(entry, read) and (entry.data_view is None or entry.style == ESQL):
        keys = "`indices`" if entry.style == ESQL else "`data_view` or `indices`"
        help = "data_view: the id of a saved data view; indices: those that hold the logs, such as [logs-*]"
        report.add(Code.BAD_KIBANA, document.find(("kibana",)), f"links to the logs need {keys}", help)


def _indices_read(config: ConfigFile) -> list[str]:
    """Return the indices of all sources that read indices, in their order."""
    return [name for source in config.sources if isinstance(source, ElasticsearchSourceEntry) for name in source.indices]


def _check_receivers(config: ConfigFile, document: RuleDocument, report: Report) -> None:
    names = [receiver.name for receiver in config.receivers] or [TERMINAL]
    for index, name in enumerate(names):
        if name in names[:index]:
            place = document.find(("receivers", index, "name"))
            report.add(Code.DUPLICATE_RECEIVER, place, f"there is another receiver `{name}`", "give each its own name")
    whole = document.whole(("receivers",), config.receivers)  # those with errors are left out and already reported
    for loc, name in receiver_references(config.route) if config.route is not None and whole else ():
        if name not in names:
            report.add(
                Code.UNKNOWN_RECEIVER, document.find(loc), f"there is no receiver `{name}`", f"known: {', '.join(names)}"
            )
    if whole:
        _check_fallbacks(config, document, report)
        _check_audit_digest(config, document, report)


def _check_fallbacks(config: ConfigFile, document: RuleDocument, report: Report) -> None:
    names, fallbacks = [receiver.name for receiver in config.receivers], _fallbacks(config)
    for index, receiver in enumerate(config.receivers):
        place = document.find(("receivers", index, "fallback"))
        if receiver.fallback is not None and receiver.fallback not in names:
            sentence = f"there is no receiver `{receiver.fallback}`"
            report.add(Code.UNKNOWN_RECEIVER, place, sentence, f"known: {', '.join(names)}")
        elif (circle := _circle(receiver.name, fallbacks)) and min(circle, key=names.index) == receiver.name:
            sentence = f"these fallbacks form a circle: {' -> '.join((*circle, receiver.name))}"
            report.add(Code.FALLBACK_CYCLE, place, sentence, "leave out one of these fallbacks")


def _check_audit_digest(config: ConfigFile, document: RuleDocument, report: Report) -> None:
    digest, place = config.audit.digest, document.find(("audit", "digest", "receiver"))
    if digest is None:
        return
    takers = [receiver.name for receiver in config.receivers if receiver.elasticsearch is None] or [TERMINAL]
    if digest.receiver not in takers:
        is_one = any(receiver.name == digest.receiver for receiver in config.receivers)
        sentence = "keeps a record of incidents, and a digest is none" if is_one else "is no receiver"
        report.add(Code.UNKNOWN_RECEIVER, place, f"`{digest.receiver}` {sentence}", f"known: {', '.join(takers)}")


def _fallbacks(config: ConfigFile) -> Mapping[str, str]:
    return {receiver.name: receiver.fallback for receiver in config.receivers if receiver.fallback is not None}


def _languages(config: ConfigFile) -> Mapping[str, str]:
    return {receiver.name: receiver.language for receiver in config.receivers if receiver.language != ENGLISH.language}


def _circle(name: str, fallbacks: Mapping[str, str]) -> list[str]:
    """Return the chain of fallbacks from `name` back to it; empty when it does not lead back."""
    chain = [name]
    while (successor := fallbacks.get(chain[-1])) is not None and successor not in chain:
        chain.append(successor)
    return chain if successor == name else []


def _check_intervals(config: ConfigFile, document: RuleDocument, report: Report) -> None:
    names = [interval.name for interval in config.time_intervals]
    for index, name in enumerate(names):
        if name in names[:index]:
            place = document.find(("time_intervals", index, "name"))
            report.add(Code.DUPLICATE_INTERVAL, place, f"there is another time interval `{name}`", "give each its own name")
    whole = document.whole(("time_intervals",), config.time_intervals)
    for loc, name in interval_references(config.route) if config.route is not None and whole else ():
        if name not in names:
            help_line = f"known: {', '.join(names)}" if names else "define it under `time_intervals`"
            report.add(Code.UNKNOWN_INTERVAL, document.find(loc), f"there is no time interval `{name}`", help_line)


def _cluster_error(name: str, template: str) -> str | None:
    if name == "cluster" and "{" in template:
        return "a source belongs to one cluster, which is fixed text; write one source for each cluster"
    return None


def _settings(config: ConfigFile, folder: Path, overrides: Mapping[str, Override]) -> Settings:
    store = _store(config.store, folder)
    spark = config.spark
    intervals = {entry.name: interval_of(entry) for entry in config.time_intervals}
    state = _state_folder()
    unnamed_store = folder / DEFAULT_STORE if state is None else state / Path(DEFAULT_STORE).name
    web = web_settings(config.web, folder, store.path or (None if state is None else unnamed_store))
    receivers = tuple(receiver_settings(entry, folder) for entry in config.receivers) or (TerminalSettings(TERMINAL),)
    return Settings(
        sources=tuple(_source(entry, folder) for entry in config.sources),
        rules=tuple(None if rules == BUILTIN else folder / rules for rules in config.rules),
        overrides=overrides,
        accepted_risks=tuple(accepted_risks(config.audit)),
        audit_digest=(digest.receiver, digest.at) if (digest := config.audit.digest) is not None else None,
        context={
            **dict(_asked_context(config)),
            **{name: value for cluster, entry in config.clusters.items() for name, value in _context(cluster, entry)},
        },
        route=route_tree(config.route, config.route.receiver, intervals)
        if config.route
        else Route(default_receiver(receivers)),
        notify_storm=config.notify_storm,
        notify_max_age_s=config.notify_max_age,
        receivers=receivers,
        fallbacks=_fallbacks(config),
        languages=(languages := _languages(config)),
        plan_languages=tuple(sorted({*languages.values(), web.language} - {"", ENGLISH.language})),
        store=store,
        retention_s=config.retention,
        redaction=redaction_of(config.redact),
        checkpoint=folder_of_run(spark, folder, (store.path or unnamed_store).with_suffix(".checkpoint")),
        checkpoint_url=checkpoint_url(spark),
        master=spark.master,
        conf={name: placed_address(value, folder) for name, value in spark.conf.items()},
        cores=max(1, spark.cores),
        partitions=spark.partitions or None,
        parallelism=spark.parallelism or None,
        heap=spark.heap,
        trigger_s=spark.trigger,
        batch_lines=max(1, spark.batch_lines),
        batch_bytes=spark.batch_bytes or None,
        audited=spark.audit,
        web=web,
        metrics=metrics_settings(config.metrics),
        heartbeat=heartbeat_settings(config.heartbeat, folder),
        links=LinkTargets(web.public_url, kibana_of(config.kibana, _indices_read(config))),
    )


def _context(cluster: str, entry: ClusterEntry) -> Iterator[tuple[str, str]]:
    brokers = ",".join(str(id_) for id_ in entry.brokers)
    values = {"bootstrap": entry.bootstrap, "connect_url": entry.connect_url, "brokers": brokers}
    yield from ((f"{cluster}.{name}", value) for name, value in values.items() if value)


def _asked_context(config: ConfigFile) -> Iterator[tuple[str, str]]:
    """Yield the addresses of the servers that are asked, and whether one signs in there, as the context of their clusters."""
    for entry in config.sources:
        scope = entry.labels.get("cluster", DEFAULT_SCOPE)
        if isinstance(entry, ConnectSourceEntry):
            yield f"{scope}.connect_url", entry.url[0].rstrip("/")
        if isinstance(entry, ClusterSourceEntry):
            yield f"{scope}.bootstrap", entry.bootstrap_servers
            if entry.options.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
                yield f"{scope}.{SIGNS_IN}", "yes"


def _source(
    entry: FilesEntry | KafkaEntry | ElasticsearchSourceEntry | ConnectSourceEntry | ClusterSourceEntry | LocalEntry,
    folder: Path,
) -> SourceSettings:
    labels = {**entry.labels, **dict(_timestamp_labels(entry))}
    if entry.may_speak_for is not None:
        labels[SPEAKS_FOR] = ", ".join(entry.may_speak_for) or NOBODY
    if isinstance(entry, KafkaEntry):
        options = {name: _beside_config(value, folder) for name, value in entry.options.items()}
        topics = tuple(dict.fromkeys(entry.topics))
        return SourceSettings(entry.type, (), labels, entry.start, entry.bootstrap_servers, topics, options)
    if isinstance(entry, ElasticsearchSourceEntry):
        return SourceSettings(
            entry.type,
            labels=labels,
            start=entry.start,
            connection=connection_of(entry, folder),
            indices=tuple(dict.fromkeys(entry.indices)),
            query=entry.query,
            read_by=entry.read_by or "",
            overlap_s=entry.overlap,
        )
    if isinstance(entry, ConnectSourceEntry | ClusterSourceEntry):
        record = os.path.normpath(folder / entry.record) if entry.record else ""
        connection = endpoint_of(entry, folder) if isinstance(entry, ConnectSourceEntry) else _kafka_endpoint(entry, folder)
        return SourceSettings(entry.type, labels=labels, connection=connection, every_s=entry.every, record=record)
    if isinstance(entry, LocalEntry):
        root = os.path.normpath(folder / entry.root) if entry.root else ""
        patterns = {label: tuple(getattr(entry, key, ())) for key, label in SELECTING.items()}
        select = {label: of_label for label, of_label in patterns.items() if of_label}
        return SourceSettings(entry.type, labels=labels, start=entry.start, root=root, select=select)
    paths = tuple(os.path.normpath(folder / path) for path in entry.paths)
    return SourceSettings(entry.type, paths, labels, entry.start)


def _kafka_endpoint(entry: ClusterSourceEntry, folder: Path) -> Mapping[str, Any]:
    options = {name: _beside_config(value, folder) for name, value in entry.options.items()}
    return {"bootstrap_servers": entry.bootstrap_servers, "options": options}


def _timestamp_labels(entry: SourceEntry) -> Iterator[tuple[str, str]]:
    """Yield (label, value) for settings of timestamps that differ from the default."""
    if entry.timezone != "UTC":
        yield TIMEZONE_LABEL, entry.timezone
    if entry.stamps.earliest is not None:
        earliest = datetime.fromisoformat(entry.stamps.earliest)
        yield EARLIEST_LABEL, (earliest if earliest.tzinfo else earliest.replace(tzinfo=ZoneInfo(entry.timezone))).isoformat()
    if entry.stamps.ahead is not None:
        yield AHEAD_LABEL, str(entry.stamps.ahead)


def _beside_config(value: str, folder: Path) -> str:
    """Return the reference `file:PATH` with its path resolved against `folder`; any other text unchanged."""
    return f"file:{os.path.normpath(folder / value.removeprefix('file:'))}" if value.startswith("file:") else value


def _state_folder() -> Path | None:
    """Return the folder of STATE_DIR; None where it is not set."""
    name = os.environ.get(STATE_DIR)
    return Path(name).absolute() if name else None


def _store(entry: StoreEntry, folder: Path) -> StoreAddress:
    """Return the address of the store, with a relative path of SQLite or of the password resolved against `folder`."""
    scheme, _, path = entry.url.partition(":///")
    relative = scheme == "sqlite" and path and not path.startswith(("/", ":"))
    state = _state_folder() if relative and os.path.normpath(path) == DEFAULT_STORE else None
    place = folder / path if state is None else state / Path(path).name
    url = f"{scheme}:///{os.path.normpath(place)}" if relative else entry.url
    return StoreAddress(url, placed(entry.password, folder))
