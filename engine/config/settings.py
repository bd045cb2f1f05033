"""Loading tocsin.yml into frozen settings. Paths in it are relative to the folder that it lies in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.config.schema import ClusterEntry, ConfigFile, FilesEntry
from engine.config.web import WebSettings, web_settings
from engine.dsl import Override
from engine.dsl.codes import Code
from engine.dsl.document import Document
from engine.dsl.reader import read
from engine.dsl.report import Report
from engine.dsl.structure import check
from engine.errors import ConfigError, UsageError
from engine.model.diagnostics import Level
from engine.model.records import Labels

BUILTIN = "builtin"
TERMINAL = "terminal"

LabelCheck = Callable[[str], str | None]  # what is wrong with the template of a label; None when nothing is


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source. `start` None: as the command decides. Labels hold `timezone` when it is not UTC."""

    type: str
    paths: tuple[str, ...]
    labels: Labels = field(default_factory=dict)
    start: str | None = None

    @property
    def scope(self) -> str:
        """What the source's lines are correlated in."""
        return self.labels.get("cluster", "default")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything tocsin.yml says. `rules` None stands for the shipped rules; `receiver` is a terminal."""

    sources: tuple[SourceSettings, ...]
    rules: tuple[Path | None, ...]
    overrides: Mapping[str, Override]
    context: Mapping[str, str]  # `<cluster>.bootstrap`, `.connect_url`, `.brokers` (a comma list)
    receiver: str
    store: str
    checkpoint: Path
    cores: int
    partitions: int
    heap: str
    trigger_s: float
    batch_lines: int
    web: WebSettings


def load(path: Path, label_check: LabelCheck = lambda _: None) -> Settings:
    """Return the settings in `path`.

    Raises UsageError when it cannot be read, and ConfigError with every finding when something in it is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the configuration cannot be read ({error.strerror}); name one with -c FILE") from None
    document, report = read(str(path), data)
    found = check(document, report, ConfigFile, {"sources": [{"type": "files", "paths": ["-"]}]}) if not report.all() else None
    if found is not None:
        _relate(found, document, report, label_check)
    errors = [finding for finding in report.all() if finding.level is Level.ERROR]
    if errors or found is None:
        raise ConfigError(errors)
    return _settings(found, path.parent)


def _relate(found: ConfigFile, document: Document, report: Report, label_check: LabelCheck) -> None:
    """Report what takes more than one key to judge."""
    names = [receiver.name for receiver in found.receivers] or [TERMINAL]
    if found.route is not None and found.route.receiver not in names:
        place = document.find(("route", "receiver"))
        report.add(Code.UNKNOWN_RECEIVER, place, f"there is no receiver `{found.route.receiver}`", f"known: {', '.join(names)}")
    for index, source in enumerate(found.sources):
        for name, template in source.labels.items():
            wrong = _wrong_cluster(name, template) or label_check(template)
            if wrong:
                report.add(Code.BAD_LABEL, document.find(("sources", index, "labels", name)), wrong)


def _wrong_cluster(name: str, template: str) -> str | None:
    if name == "cluster" and "{" in template:
        return "a source belongs to one cluster, which is fixed text; write one source for each cluster"
    return None


def _settings(found: ConfigFile, folder: Path) -> Settings:
    store = _store(found.store, folder)
    spark = found.spark
    receivers = [receiver.name for receiver in found.receivers] or [TERMINAL]
    return Settings(
        sources=tuple(_source(entry, folder) for entry in found.sources),
        rules=tuple(None if rules == BUILTIN else folder / rules for rules in found.rules),
        overrides={
            rule: Override(entry.disabled, entry.severity or "", entry.labels) for rule, entry in found.overrides.items()
        },
        context={name: value for cluster, entry in found.clusters.items() for name, value in _context(cluster, entry)},
        receiver=found.route.receiver if found.route else receivers[0],
        store=store,
        checkpoint=folder / spark.checkpoint if spark.checkpoint else _beside(store),
        cores=max(1, spark.cores),
        partitions=max(1, spark.partitions),
        heap=spark.heap,
        trigger_s=spark.trigger,
        batch_lines=max(1, spark.batch_lines),
        web=web_settings(found.web),
    )


def _context(cluster: str, entry: ClusterEntry) -> Iterator[tuple[str, str]]:
    brokers = ",".join(str(id_) for id_ in entry.brokers)
    values = {"bootstrap": entry.bootstrap, "connect_url": entry.connect_url, "brokers": brokers}
    yield from ((f"{cluster}.{name}", value) for name, value in values.items() if value)


def _source(entry: FilesEntry, folder: Path) -> SourceSettings:
    labels = dict(entry.labels) if entry.timezone == "UTC" else {**entry.labels, "timezone": entry.timezone}
    paths = tuple(os.path.normpath(folder / path) for path in entry.paths)
    return SourceSettings(entry.type, paths, labels, entry.start)


def _store(url: str, folder: Path) -> str:
    """Return a relative SQLite address with its path below `folder`."""
    scheme, _, path = url.partition(":///")
    relative = scheme == "sqlite" and path and not path.startswith(("/", ":"))
    return f"{scheme}:///{os.path.normpath(folder / path)}" if relative else url


def _beside(store: str) -> Path:
    return Path(store.partition(":///")[2] or "tocsin.db").with_suffix(".checkpoint")
