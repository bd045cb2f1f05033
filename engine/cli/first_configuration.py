"""Write a first, commented tocsin.yml from a few answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from engine.cli.authoring.yaml_text import scalar
from engine.errors import UsageError

TOKEN = "env:SLACK_BOT_TOKEN"  # noqa: S105  (a reference)
SCHEMA_FILE = "tocsin.schema.json"
MODELINE = "# yaml-language-server: $schema="
_KINDS = {"docker": "projects", "kubernetes": "namespaces", "journald": "units"}  # and the selection behind the colon
_KAFKA = re.compile(r"kafka:(?P<servers>[^/]+)/(?P<topics>[\w.,-]+)")
LOGS_HELP = (
    "a path or pattern, docker[:PROJECT], kubernetes[:NAMESPACE], journald[:UNIT], kafka:HOST:PORT/TOPIC,"
    " or https://HOST:9200/INDICES for Elasticsearch"
)


class FirstAnswers(Struct, frozen=True):
    """The answers that a first configuration is made of; empty texts were not given. `slack` is a channel."""

    logs: tuple[str, ...]
    cluster: str = ""
    bootstrap: str = ""
    brokers: tuple[int, ...] = ()
    timezone: str = ""
    slack: str = ""


def first_configuration(answers: FirstAnswers) -> str:
    """Return the text of a tocsin.yml. Raises UsageError for `logs` that are of no known form."""
    return "\n".join([*_head(), *_clusters(answers), *_sources(answers), *_receivers(answers), *_rest(), ""])


def _head() -> Iterator[str]:
    yield f"{MODELINE}{SCHEMA_FILE}"
    yield "# Every key: docs/configuration.md. After a change: tocsin config check"
    yield ""


def _clusters(answers: FirstAnswers) -> Iterator[str]:
    entry: dict[str, Any] = {}
    if answers.brokers:
        entry["brokers"] = list(answers.brokers)
    if answers.bootstrap:
        entry["bootstrap"] = answers.bootstrap
    yield "# What fixes are filled in with, and the brokers that are expected to print."
    if entry:
        yield "clusters:"
        yield f"  {scalar(answers.cluster or 'default')}: {_flow(entry)}"
    else:
        yield "# clusters:"
        yield f'#   {scalar(answers.cluster or "default")}: {{brokers: [1, 2, 3], bootstrap: "kafka-1:9092"}}'
    yield ""


def _sources(answers: FirstAnswers) -> Iterator[str]:
    yield "# Where the logs are (docs/sources.md). The label `cluster` says what belongs together."
    yield "sources:"
    for place in answers.logs:
        entry = dict(source_of(place))
        if answers.cluster:
            entry["labels"] = {"cluster": answers.cluster}
        if answers.timezone:
            entry["timezone"] = answers.timezone
        yield f"  - {_flow(entry)}"
    if not answers.timezone:
        yield "  # stamps without a zone are UTC, unless a source says otherwise: timezone: Asia/Seoul"
    yield ""


def source_of(place: str) -> Mapping[str, Any]:
    """Return the entry of `sources` for one answer to where the logs are (LOGS_HELP).

    Raises UsageError for an empty one, and for addresses that name no topic or index.
    """
    kind, _, selection = place.partition(":")
    if kind in _KINDS:
        return {"type": kind, **({_KINDS[kind]: selection.split(",")} if selection else {})}
    if kind == "kafka":
        if (parts := _KAFKA.fullmatch(place)) is None:
            raise UsageError(f"`{place}`: write kafka:HOST:PORT/TOPIC")
        return {"type": "kafka", "bootstrap_servers": parts["servers"], "topics": parts["topics"].split(",")}
    if kind in ("http", "https"):
        address = urlsplit(place)
        indices = [name for name in address.path.strip("/").split(",") if name]
        if not indices or "@" in address.netloc:
            raise UsageError("the address of Elasticsearch is https://HOST:9200/INDICES, without a password")
        url = f"{address.scheme}://{address.netloc}"
        return {"type": "elasticsearch", "url": url, "indices": indices}
    if not place.strip():
        raise UsageError(f"where are the logs? Write {LOGS_HELP}")
    return {"type": "files", "paths": [place]}


def _receivers(answers: FirstAnswers) -> Iterator[str]:
    yield "# Who is notified (docs/notifications.md). Secrets are named as env:NAME or file:PATH, never written here."
    yield "receivers:"
    if answers.slack:
        yield f"  - {_flow({'name': 'slack', 'slack': {'channel': answers.slack, 'token': TOKEN}})}"
    else:
        yield "  - {name: terminal, terminal: {}}"
        yield '  # - {name: slack, slack: {channel: "#kafka-ops", token: "env:SLACK_BOT_TOKEN"}}'
    name = "slack" if answers.slack else "terminal"
    yield "route:"
    yield f"  receiver: {name}"
    yield "  # routes:"
    yield "  #   - {matchers: ['component=\"connect\"'], receiver: data-team}"
    yield ""


def _rest() -> Iterator[str]:
    yield "# Incidents, and beside them the offsets of what was read."
    yield "store: sqlite:///./.tocsin/tocsin.db"
    yield "# retention: 90d"
    yield ""
    yield "# The pages of `tocsin serve`; messages link to public_url, the address of a proxy before them."
    yield '# web: {listen: "127.0.0.1:8320", public_url: "https://tocsin.example"}'


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return scalar(str(value))
