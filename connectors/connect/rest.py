"""Asks a Kafka Connect cluster by its REST API. The requests are a closed set, all GET; configurations of connectors,
which may hold passwords, are asked for by an audit only.

    /                                         version of the worker
    /connectors?expand=status                 the states of all connectors and tasks (by name from workers before 2.3)
    /connectors, /connectors/{c}/status       the same, one by one
    /connectors/{c}/tasks/{t}/status          whether a task that is not there any more is gone
    /connectors/{c}/topics                    the topics that a connector has used since its start (2.5), once an hour
    /connector-plugins                        plugins and their versions, once an hour

An audit asks for this too, and keeps AUDITED_SETTINGS of the settings only:

    /connectors?expand=info, /connectors/{c}  settings of connectors

Source: Apache Kafka, Connect REST API (org.apache.kafka.connect.runtime.rest.resources.ConnectorsResource).
"""

from __future__ import annotations

import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request

from msgspec import Struct
from msgspec.structs import replace

from connectors.connect.statuses import (
    ITSELF,
    ConnectInventory,
    Status,
    gone,
    inventory_of,
    lines_of,
    to_ask_topics,
    topics_line,
    with_parts,
)
from engine.codec import dumps, foreign
from engine.errors import SourceAway, SourceDenied, SourceError, UsageError
from engine.exchange import MOST_BYTES, HttpAnswer, exchange
from engine.model.visible import visible
from engine.secrets import parse_secret

SILENT_S, LONGEST_S = 10.0, 20.0  # of one request
ROUND_S, AUDIT_S = 60.0, 600.0  # of one round; of one in an audit, which asks about every connector at once
MOST_TOPICS = 200  # connectors whose topics are asked for in one round; those of the others in the next; an audit asks for all
MOST_GONE = 200  # parts that are gone and asked about in one round; the others in the next
AUDITED_SETTINGS = (  # none of them holds a secret
    "connector.class",
    "topics",
    "errors.tolerance",
    "errors.log.enable",
    "errors.deadletterqueue.topic.name",
    "key.converter",
    "key.converter.schemas.enable",
    "value.converter",
    "value.converter.schemas.enable",
    "producer.override.max.request.size",
    "consumer.override.max.partition.fetch.bytes",
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----")


class ConnectEndpoint(Struct, frozen=True):
    """The addresses of the workers of one Connect cluster, and the credentials of its REST API. `password` and `ca` are
    references (`env:NAME`, `file:PATH`). `ca`: certificates in PEM that verify the workers'; empty: the system's."""

    urls: tuple[str, ...]
    user: str = ""
    password: str = ""
    ca: str = ""
    unprotected: bool = False


@dataclass
class ConnectAsker:
    """Asks the first worker that answers; the last one that did comes first. See asking.Asker."""

    endpoint: ConnectEndpoint
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _first: int = field(default=0, repr=False)

    @property
    def resource(self) -> str:
        """The addresses."""
        return ", ".join(self.endpoint.urls)

    @property
    def inventory(self) -> type[ConnectInventory]:
        """The type of what one round learns."""
        return ConnectInventory

    def ask(self, before: ConnectInventory | None, whole: bool) -> tuple[ConnectInventory, Sequence[str]]:
        """Return what the cluster holds, and the lines: the worker's version, and the states that have changed."""
        return self._ask(before, whole, is_audit=False)

    def _ask(self, before: ConnectInventory | None, whole: bool, is_audit: bool) -> tuple[ConnectInventory, Sequence[str]]:
        failures = list[SourceError]()
        urls = self.endpoint.urls
        for number in range(len(urls)):
            at = (self._first + number) % len(urls)
            try:
                answer = _Round(urls[at], self.endpoint, self.clock, is_audit).ask(before, whole)
            except SourceError as failure:
                failures.append(failure)
            else:
                self._first = at
                return answer
        raise failures[0] if len(failures) == 1 else SourceAway(self.resource, "; ".join(map(str, failures)))

    def audit(self) -> tuple[Sequence[str], Sequence[str]]:
        """Ask once, for everything that an audit judges; return the lines, and sentences about what cannot be seen. Raises
        SourceError when no worker answers."""
        inventory, lines = self._ask(None, whole=False, is_audit=True)
        first = self.endpoint.urls[self._first]
        more, hidden = _Round(first, self.endpoint, self.clock, is_audit=True).audit(inventory)
        for url in self.endpoint.urls:
            try:
                more.append(_Round(url, self.endpoint, self.clock).worker())
            except SourceError as failure:
                hidden.append(f"{failure}, so its version is not judged")
        return [*lines[1:], *more], hidden

    def close(self) -> None:
        """Do nothing: no connection stays open between two requests."""


class _Round:
    """One round with the worker at `url`."""

    def __init__(self, url: str, endpoint: ConnectEndpoint, clock: Callable[[], float], is_audit: bool = False) -> None:
        self._url, self._endpoint, self._clock = url.rstrip("/"), endpoint, clock
        self._is_audit, self._limit_s = is_audit, AUDIT_S if is_audit else ROUND_S
        self._until = clock() + self._limit_s
        self._place = urlsplit(url).netloc
        self._trusted = _trusted(endpoint.ca) if endpoint.ca else None

    def ask(self, before: ConnectInventory | None, whole: bool) -> tuple[ConnectInventory, Sequence[str]]:
        server = self._answer("/", dict)
        statuses = self._statuses()
        inventory = inventory_of(str(server.get("version", "")), statuses)
        lines = [dumps(server), *lines_of(statuses, before, whole)]
        if before is not None and (missing := gone(before, inventory)):
            unsure = list[tuple[str, str]](missing[MOST_GONE:])
            for name, part in missing[:MOST_GONE]:
                tasks = "" if part == ITSELF else f"/tasks/{part}"
                answer = self._get(f"/connectors/{_escaped(name)}{tasks}/status")
                if answer.status == 404:
                    lines.append(dumps(_json(answer) or {}))
                else:  # it is there again, or the worker cannot tell at present
                    unsure.append((name, part))
            inventory = with_parts(inventory, unsure, before)
        inventory = self._with_topics(inventory, before, whole)
        topics_before = {} if before is None or whole else before.topics
        lines += [topics_line(name, topics) for name, topics in inventory.topics.items() if topics_before.get(name) != topics]
        if whole:
            lines.append(dumps(self._answer("/connector-plugins", list)))
        return inventory, lines

    def _with_topics(self, inventory: ConnectInventory, before: ConnectInventory | None, whole: bool) -> ConnectInventory:
        """Return the inventory with the topics of connectors; those that are not asked for now, or that the worker does not
        tell (it is older, or does not track them), are as they were."""
        topics = {} if before is None else {name: before.topics[name] for name in inventory.parts if name in before.topics}
        names = to_ask_topics(inventory, before, whole)
        for name in names if self._is_audit else names[:MOST_TOPICS]:
            answer = self._get(f"/connectors/{_escaped(name)}/topics")
            document = _json(answer)
            of_connector = document.get(name) if isinstance(document, dict) else None
            listed = of_connector.get("topics") if isinstance(of_connector, dict) else None
            if listed or answer.status in (403, 404):  # one without topics will have some once it has worked
                topics[name] = tuple(sorted(map(str, listed or ())))
        return replace(inventory, topics=dict(sorted(topics.items())))

    def worker(self) -> str:
        """Return the document of the worker itself, with its address."""
        return dumps({"worker": self._place, **self._answer("/", dict)})

    def audit(self, inventory: ConnectInventory) -> tuple[list[str], list[str]]:
        """Return documents with the settings of all connectors, and sentences about settings and topics that cannot be seen."""
        infos = sorted(self._infos().items())
        hidden = [
            f"the settings of connector {name} cannot be read, so they are not judged" for name, info in infos if info is None
        ]
        hidden += [
            f"the topics of connector {name} are not known (it has used none yet, or the worker does not tell), so its sizes"
            " and converters are not judged"
            for name, info in infos
            if not inventory.topics.get(name) and not _names_topics(info)
        ]
        return [dumps(info) for _, info in infos if info is not None], hidden

    def _infos(self) -> Mapping[str, Mapping[str, Any] | None]:
        """Return the audited settings of each connector, by name; None for one whose answer cannot be used."""
        answer = self._get("/connectors?expand=info")
        expanded = None if len(answer.body) >= MOST_BYTES else self._checked(answer, dict | list)
        if isinstance(expanded, dict):
            return {
                str(name): _audited(entry.get("info") if isinstance(entry, dict) else None) for name, entry in expanded.items()
            }
        names = self._answer("/connectors", list) if expanded is None else expanded
        return {str(name): _audited(_json(self._get(f"/connectors/{_escaped(str(name))}"))) for name in names}

    def _statuses(self) -> list[Status]:
        """Return the status of every connector. An answer that is too long, or that only names them, is asked one by one."""
        answer = self._get("/connectors?expand=status")
        expanded = None if len(answer.body) >= MOST_BYTES else self._checked(answer, dict | list)
        if isinstance(expanded, dict):
            return [self._status(entry.get("status") if isinstance(entry, dict) else None) for entry in expanded.values()]
        names = self._answer("/connectors", list) if expanded is None else expanded
        answers = (self._get(f"/connectors/{_escaped(str(name))}/status") for name in names)
        return [self._status(self._checked(answer, dict)) for answer in answers if answer.status != 404]  # just deleted

    def _status(self, document: Any) -> Status:
        """Return a status whose shape was checked. Raises SourceError for another document."""
        tasks = document.get("tasks") if isinstance(document, dict) else None
        if (
            not isinstance(tasks, list)
            or not isinstance(document.get("name"), str)
            or not all(
                isinstance(part, dict) and isinstance(part.get("state"), str) for part in (document.get("connector"), *tasks)
            )
            or not all(isinstance(task.get("id"), int) for task in tasks)
        ):
            raise SourceError(f"what answers at {self._place} is not Kafka Connect: a status of a connector has another shape")
        return dict(document)

    def _answer(self, path: str, kind: Any) -> Any:
        return self._checked(self._get(path), kind)

    def _checked(self, answer: HttpAnswer, kind: Any) -> Any:
        """Return the JSON of an answer. Raises SourceDenied, SourceAway or SourceError when it is none of `kind`."""
        if answer.status in (401, 403):
            raise SourceDenied(
                f"Kafka Connect at {self._place} does not let us in (status {answer.status}); check user and password"
            )
        if answer.is_redirect:
            raise SourceError(f"{self._place} redirects to {answer.redirection()}, which is not followed; check url")
        if answer.status != 200:
            quoted = answer.quoted()
            why = f"Kafka Connect at {self._place} answers with status {answer.status}{f': {quoted}' if quoted else ''}"
            raise SourceAway(self._place, why)
        if not isinstance(document := _json(answer), kind):
            raise SourceError(f"what answers at {self._place} is not Kafka Connect: no such JSON comes back; check url")
        return document

    def _get(self, path: str) -> HttpAnswer:
        """Return the answer to GET `path`. Raises SourceAway when there is none."""
        if self._clock() > self._until:
            raise SourceAway(
                self._place, f"Kafka Connect at {self._place} took more than {self._limit_s:.0f} s to answer all requests"
            )
        request = Request(f"{self._url}{path}", headers=self._headers())  # noqa: S310 - the scheme is checked with the settings
        try:
            return exchange(request, SILENT_S, LONGEST_S, trusted=self._trusted)
        except (OSError, HTTPException, ValueError) as error:
            raise SourceAway(self._place, f"Kafka Connect at {self._place} {_failure(error)}") from error

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "tocsin"}
        if self._endpoint.user:
            password = parse_secret(self._endpoint.password).reveal() if self._endpoint.password else ""
            token = b64encode(f"{self._endpoint.user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers


def _audited(info: Any) -> Mapping[str, Any] | None:
    """Return name, type and audited settings of a connector; None for another document."""
    config = info.get("config") if isinstance(info, dict) else None
    if not isinstance(config, dict) or not isinstance(info.get("name"), str):
        return None
    settings = {name: config[name] for name in AUDITED_SETTINGS if name in config}
    return {"name": info["name"], "config": settings, "type": str(info.get("type", ""))}


def _names_topics(info: Mapping[str, Any] | None) -> bool:
    """Return whether the settings of a connector name the topics that it uses, which `topics` of a sink does."""
    return info is not None and info["type"] == "sink" and bool(info["config"].get("topics"))


def _escaped(name: str) -> str:
    return quote(name, safe="")


def _json(answer: HttpAnswer) -> Any:
    try:
        return foreign(answer.body)
    except (ValueError, RecursionError):
        return None


def _failure(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"cannot be trusted: {visible(cause.verify_message)}; name its authority with ca: file:PATH"
    if isinstance(cause, ssl.SSLError):
        return "does not speak TLS as expected; check http or https in url"
    if isinstance(cause, TimeoutError):
        return "does not answer in time"
    return f"cannot be reached ({type(cause).__name__})"


def _trusted(reference: str) -> ssl.SSLContext:
    """Return the authorities in `reference`. Raises UsageError when it holds none."""
    certificates = "\n".join(_CERTIFICATE.findall(parse_secret(reference).reveal()))
    try:
        return ssl.create_default_context(cadata=certificates or "none")
    except (ssl.SSLError, ValueError):
        raise UsageError(f"ca of connect: {reference} holds no certificate in PEM") from None
