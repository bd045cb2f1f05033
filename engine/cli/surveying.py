"""Ask the clusters of a configuration, or read records of what was asked, for an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from connectors import connect, kafka_cluster
from engine.asking import stamped
from engine.cli.intake import Intake
from engine.config import Settings, SourceSettings
from engine.errors import SourceError, UsageError
from engine.model.addresses import is_web_address
from engine.model.records import RawLine
from engine.risks.cluster import AuditedCluster
from engine.risks.picturing import AuditTerms
from engine.risks.reading import read_cluster, texts_of

ASKED_TYPES = ("kafka-cluster", "connect")


class Survey(Struct, frozen=True):
    """What was seen of each cluster, in order, and a sentence for each server or record that gave no answer."""

    clusters: tuple[AuditedCluster, ...]
    failures: tuple[str, ...] = ()


def asked_sources(settings: Settings) -> tuple[SourceSettings, ...]:
    """Return the sources that ask. Raises UsageError when there are none."""
    sources = tuple(source for source in settings.sources if source.type in ASKED_TYPES)
    if not sources:
        types = " or ".join(ASKED_TYPES)
        raise UsageError(f"no source of the configuration is of type {types}; add one, or name a server with --bootstrap")
    return sources


def sources_at(bootstrap: str, connect_urls: Sequence[str]) -> tuple[SourceSettings, ...]:
    """Return sources that ask these addresses. Raises UsageError for an address with a password, or that is none."""
    wrong = [url for url in connect_urls if not is_web_address(url) or "@" in url]
    if wrong:
        raise UsageError("--connect-url takes an http address without a password; credentials stand in a configuration")
    sources = []
    if bootstrap:
        sources.append(SourceSettings("kafka-cluster", connection={"bootstrap_servers": bootstrap}))
    if connect_urls:
        sources.append(SourceSettings("connect", connection={"urls": list(connect_urls)}))
    return tuple(sources)


def ask_all(sources: Sequence[SourceSettings], context: Mapping[str, str], record: Path | None) -> Survey:
    """Ask each source once; those of one cluster are judged together.

    Args:
        context: addresses for commands, by `<cluster>.<name>`; they go before those that are asked.
        record: a file that the answers are appended to. Raises UsageError when it cannot be written.
    """
    scopes = dict.fromkeys(source.scope for source in sources)
    now, failures, clusters = datetime.now(UTC), list[str](), list[AuditedCluster]()
    for scope in scopes:
        lines, base = list[str](), AuditedCluster(scope, at=now)
        for source in sources:
            if source.scope == scope:
                base = _with_address(base, source, context)
                try:
                    told, unseen = _ask(source, now)
                except SourceError as error:
                    failures.append(str(error))
                    continue
                lines += told
                base = replace(base, unseen=(*base.unseen, *unseen))
        data = stamped(lines, now)
        if record is not None:
            _append(record, data)
        if lines:
            clusters.append(read_cluster(texts_of(data.splitlines()), base))
    return Survey(tuple(clusters), tuple(failures))


def terms_of(settings: Settings) -> AuditTerms:
    """Return what the clusters of a configuration are judged by when only pictures of them are at hand."""
    clusters: dict[str, AuditedCluster] = {}
    for source in settings.sources:
        if source.type in ASKED_TYPES:
            base = clusters.get(source.scope, AuditedCluster(source.scope))
            clusters[source.scope] = _with_address(base, source, settings.context)
    return AuditTerms(settings.accepted_risks, clusters)


def read_records(paths: Sequence[str], bootstrap: str, connect_url: str) -> Survey:
    """Read records of one cluster. The addresses are for commands."""
    intake = Intake(paths, {})
    texts = texts_of(line.value for line in intake.lines() if isinstance(line, RawLine))
    cluster = read_cluster(texts, AuditedCluster("default", bootstrap=bootstrap, connect_url=connect_url))
    return Survey((cluster,), tuple(intake.refused))


def _ask(source: SourceSettings, now: datetime) -> tuple[Sequence[str], Sequence[str]]:
    settings: Mapping[str, Any] = {"connection": source.connection}
    return kafka_cluster.survey(settings, now) if source.type == "kafka-cluster" else connect.survey(settings)


def _with_address(base: AuditedCluster, source: SourceSettings, context: Mapping[str, str]) -> AuditedCluster:
    if source.type == "kafka-cluster":
        address = context.get(f"{source.scope}.bootstrap") or source.connection["bootstrap_servers"]
        options = source.connection.get("options", {})
        signs_in = options.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT"
        return replace(base, bootstrap=address.replace(" ", ""), tls=signs_in)
    url = context.get(f"{source.scope}.connect_url") or source.connection["urls"][0]
    return replace(base, connect_url=url, asked_connect=True)


def _append(path: Path, data: bytes) -> None:
    try:
        with path.open("ab") as record:
            record.write(data)
    except OSError as error:
        raise UsageError(f"{path}: the answers cannot be written there ({error.strerror})") from None
