"""Loading tocsin.yml into frozen settings. Paths in it are relative to the folder that it lies in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec import Struct, field
from msgspec.structs import replace

from engine.config.hours import interval_of
from engine.config.kibana import kibana_of
from engine.config.overriding import override
from engine.config.receivers import ReceiverSettings, TerminalSettings, receiver_settings
from engine.config.redaction import redaction_of
from engine.config.routing import named_intervals, named_receivers, route_tree
from engine.config.schema import ClusterEntry, ConfigFile, FilesEntry, KafkaEntry
from engine.config.secrets import without_secrets
from engine.config.web import WebSettings, web_settings
from engine.dsl import Override
from engine.dsl.codes import Code
from engine.dsl.document import RuleDocument
from engine.dsl.reader import read
from engine.dsl.report import Report
from engine.dsl.structure import check
from engine.errors import ConfigError, UsageError
from engine.model.diagnostics import Diagnostic, Level
from engine.model.links import LinkTargets
from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, NOBODY, SPEAKS_FOR, TIMEZONE_LABEL, Labels
from engine.model.redaction import Redaction
from engine.model.routes import Route

BUILTIN = "builtin"
TERMINAL = "terminal"

LabelCheck = Callable[[str], str | None]  # what is wrong with the template of a label; None when nothing is
OptionCheck = Callable[[str, str], str | None]  # what is wrong with an option, by name and value; None when nothing is


class SourceSettings(Struct, frozen=True):
    """One source. `start` None: as the command decides. Labels hold how stamps are read, where it is not as ever.

    `paths` are those of type files; `bootstrap_servers`, `topics` and `options` belong to type kafka.
    """

    type: str
    paths: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    start: str | None = None
    bootstrap_servers: str = ""
    topics: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """What the source's lines are correlated in."""
        return self.labels.get("cluster", "default")


def _nothing_wrong(*_: str) -> str | None:
    return None


class Checks(Struct, frozen=True):
    """What the connectors know of their part of a configuration: labels by type of source, options of type kafka."""

    labels: Mapping[str, LabelCheck] = field(default_factory=dict)
    option: OptionCheck = _nothing_wrong


NO_CHECKS = Checks()


class Settings(Struct, frozen=True):
    """Everything tocsin.yml says. `rules` None stands for the shipped rules; `route` names `receivers` only."""

    sources: tuple[SourceSettings, ...]
    rules: tuple[Path | None, ...]
    overrides: Mapping[str, Override]
    context: Mapping[str, str]  # `<cluster>.bootstrap`, `.connect_url`, `.brokers` (a comma list)
    route: Route
    notify_max_age_s: float | None  # None: as the command decides; 0: nothing is too old to be told
    receivers: tuple[ReceiverSettings, ...]
    fallbacks: Mapping[str, str]  # receiver: who is told instead when it refuses; no circles
    store: str
    retention_s: float  # how long incidents that are over are kept; 0: for ever
    redaction: Redaction
    checkpoint: Path
    cores: int
    partitions: int
    heap: str
    trigger_s: float
    batch_lines: int
    web: WebSettings
    links: LinkTargets  # what leads on from an incident, in messages and on its page


def load(path: Path, checks: Checks = NO_CHECKS) -> Settings:
    """Return the settings in `path`.

    Raises UsageError when it cannot be read, and ConfigError with every finding when something in it is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the configuration cannot be read ({error.strerror}); name one with -c FILE") from None
    document, report = read(str(path), data)
    found = check(document, report, ConfigFile, {"sources": [{"type": "files", "paths": ["-"]}]}) if not report.all() else None
    overrides: Mapping[str, Override] = {}
    if found is not None:
        _relate(found, document, report, checks)
        overrides = {rule: override(rule, entry, document, report) for rule, entry in found.overrides.items()}
    errors = [_discreet(finding) for finding in report.all() if finding.level is Level.ERROR]
    if errors or found is None:
        raise ConfigError(errors)
    return _settings(found, path.parent, overrides)


def _discreet(finding: Diagnostic) -> Diagnostic:
    return replace(finding, source_line=without_secrets(finding.source_line))


def _relate(found: ConfigFile, document: RuleDocument, report: Report, checks: Checks) -> None:
    """Report what takes more than one key to judge."""
    _relate_receivers(found, document, report)
    _relate_intervals(found, document, report)
    for index, source in enumerate(found.sources):
        label_check = checks.labels.get(source.type, _nothing_wrong)
        for name, template in source.labels.items():
            wrong = _wrong_cluster(name, template) or label_check(template)
            if wrong:
                report.add(Code.BAD_LABEL, document.find(("sources", index, "labels", name)), wrong)
        for name, value in source.options.items() if isinstance(source, KafkaEntry) else ():
            if wrong := checks.option(name, value):
                report.add(Code.BAD_OPTION, document.find(("sources", index, "options", name)), wrong)


def _relate_receivers(found: ConfigFile, document: RuleDocument, report: Report) -> None:
    names = [receiver.name for receiver in found.receivers] or [TERMINAL]
    for index, name in enumerate(names):
        if name in names[:index]:
            place = document.find(("receivers", index, "name"))
            report.add(Code.DUPLICATE_RECEIVER, place, f"there is another receiver `{name}`", "give each its own name")
    whole = document.whole(("receivers",), found.receivers)  # those with errors are left out, and said already
    for loc, name in named_receivers(found.route) if found.route is not None and whole else ():
        if name not in names:
            report.add(
                Code.UNKNOWN_RECEIVER, document.find(loc), f"there is no receiver `{name}`", f"known: {', '.join(names)}"
            )
    if whole:
        _relate_fallbacks(found, document, report)


def _relate_fallbacks(found: ConfigFile, document: RuleDocument, report: Report) -> None:
    names, fallbacks = [receiver.name for receiver in found.receivers], _fallbacks(found)
    for index, receiver in enumerate(found.receivers):
        place = document.find(("receivers", index, "fallback"))
        if receiver.fallback is not None and receiver.fallback not in names:
            sentence = f"there is no receiver `{receiver.fallback}`"
            report.add(Code.UNKNOWN_RECEIVER, place, sentence, f"known: {', '.join(names)}")
        elif (circle := _circle(receiver.name, fallbacks)) and min(circle, key=names.index) == receiver.name:
            sentence = f"what it refuses comes back to it: {' -> '.join((*circle, receiver.name))}"
            report.add(Code.FALLBACK_CYCLE, place, sentence, "leave out one of these fallbacks")


def _fallbacks(found: ConfigFile) -> Mapping[str, str]:
    return {receiver.name: receiver.fallback for receiver in found.receivers if receiver.fallback is not None}


def _circle(name: str, fallbacks: Mapping[str, str]) -> list[str]:
    """Return the receivers from `name` back to it, empty when they do not lead back."""
    chain = [name]
    while (following := fallbacks.get(chain[-1])) is not None and following not in chain:
        chain.append(following)
    return chain if following == name else []


def _relate_intervals(found: ConfigFile, document: RuleDocument, report: Report) -> None:
    names = [interval.name for interval in found.time_intervals]
    for index, name in enumerate(names):
        if name in names[:index]:
            place = document.find(("time_intervals", index, "name"))
            report.add(Code.DUPLICATE_INTERVAL, place, f"there is another time interval `{name}`", "give each its own name")
    whole = document.whole(("time_intervals",), found.time_intervals)
    for loc, name in named_intervals(found.route) if found.route is not None and whole else ():
        if name not in names:
            known = f"known: {', '.join(names)}" if names else "define it under `time_intervals`"
            report.add(Code.UNKNOWN_INTERVAL, document.find(loc), f"there is no time interval `{name}`", known)


def _wrong_cluster(name: str, template: str) -> str | None:
    if name == "cluster" and "{" in template:
        return "a source belongs to one cluster, which is fixed text; write one source for each cluster"
    return None


def _settings(found: ConfigFile, folder: Path, overrides: Mapping[str, Override]) -> Settings:
    store = _store(found.store, folder)
    spark = found.spark
    intervals = {entry.name: interval_of(entry) for entry in found.time_intervals}
    web = web_settings(found.web)
    receivers = tuple(receiver_settings(entry, folder) for entry in found.receivers) or (TerminalSettings(TERMINAL),)
    return Settings(
        sources=tuple(_source(entry, folder) for entry in found.sources),
        rules=tuple(None if rules == BUILTIN else folder / rules for rules in found.rules),
        overrides=overrides,
        context={name: value for cluster, entry in found.clusters.items() for name, value in _context(cluster, entry)},
        route=route_tree(found.route, found.route.receiver, intervals) if found.route else Route(receivers[0].name),
        notify_max_age_s=found.notify_max_age,
        receivers=receivers,
        fallbacks=_fallbacks(found),
        store=store,
        retention_s=found.retention,
        redaction=redaction_of(found.redact),
        checkpoint=folder / spark.checkpoint if spark.checkpoint else _beside(store),
        cores=max(1, spark.cores),
        partitions=max(1, spark.partitions),
        heap=spark.heap,
        trigger_s=spark.trigger,
        batch_lines=max(1, spark.batch_lines),
        web=web,
        links=LinkTargets(web.public_url, kibana_of(found.kibana)),
    )


def _context(cluster: str, entry: ClusterEntry) -> Iterator[tuple[str, str]]:
    brokers = ",".join(str(id_) for id_ in entry.brokers)
    values = {"bootstrap": entry.bootstrap, "connect_url": entry.connect_url, "brokers": brokers}
    yield from ((f"{cluster}.{name}", value) for name, value in values.items() if value)


def _source(entry: FilesEntry | KafkaEntry, folder: Path) -> SourceSettings:
    labels = {**entry.labels, **dict(_of_stamps(entry))}
    if entry.may_speak_for is not None:
        labels[SPEAKS_FOR] = ", ".join(entry.may_speak_for) or NOBODY
    if isinstance(entry, KafkaEntry):
        options = {name: _beside_config(value, folder) for name, value in entry.options.items()}
        topics = tuple(dict.fromkeys(entry.topics))
        return SourceSettings(entry.type, (), labels, entry.start, entry.bootstrap_servers, topics, options)
    paths = tuple(os.path.normpath(folder / path) for path in entry.paths)
    return SourceSettings(entry.type, paths, labels, entry.start)


def _of_stamps(entry: FilesEntry | KafkaEntry) -> Iterator[tuple[str, str]]:
    """Yield the labels that say how stamps are read, where that is not as ever."""
    if entry.timezone != "UTC":
        yield TIMEZONE_LABEL, entry.timezone
    if entry.stamps.earliest is not None:
        earliest = datetime.fromisoformat(entry.stamps.earliest)
        yield EARLIEST_LABEL, (earliest if earliest.tzinfo else earliest.replace(tzinfo=ZoneInfo(entry.timezone))).isoformat()
    if entry.stamps.ahead is not None:
        yield AHEAD_LABEL, str(entry.stamps.ahead)


def _beside_config(value: str, folder: Path) -> str:
    """Return the reference `file:PATH` with its path below `folder`; any other text as it is."""
    return f"file:{os.path.normpath(folder / value.removeprefix('file:'))}" if value.startswith("file:") else value


def _store(url: str, folder: Path) -> str:
    """Return a relative SQLite address with its path below `folder`."""
    scheme, _, path = url.partition(":///")
    relative = scheme == "sqlite" and path and not path.startswith(("/", ":"))
    return f"{scheme}:///{os.path.normpath(folder / path)}" if relative else url


def _beside(store: str) -> Path:
    return Path(store.partition(":///")[2] or "tocsin.db").with_suffix(".checkpoint")
