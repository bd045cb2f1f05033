"""Reads which connectors and tasks have failed, and their traces, out of documents of the Kafka Connect REST API. Of a document
that tells when it was asked for, every state is read: one without a time cannot show that a failure is over.

Shapes: a connector's status (`/connectors/{name}/status`), many of them by name (`/connectors?expand=status`), one task's
status (`/connectors/{name}/tasks/{id}/status`), which alerts also carry. Unescaped line ends inside strings are accepted, since
some alerts have them. Source: org.apache.kafka.connect.runtime.rest.entities.ConnectorStateInfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from engine.codec import dumps, foreign
from engine.model.records import Labels

STATUS = "org.apache.kafka.connect.runtime.rest.entities.ConnectorStateInfo"  # the logger of events that a status gives
_FAILED = "FAILED"
_NAME = re.compile(r'\{\s*"name"\s*:\s*"([^"]{1,255})"\s*,\s*"connector"')
_TASK = re.compile(r'\{\s*"id"\s*:\s*(\d{1,6})\s*,[^{}]{0,400}?"state"\s*:\s*"FAILED"')


class ConnectorPart(Struct, frozen=True):
    """A connector or task: the trace of a failed one, else the JSON of its state; and the labels connector, task and worker
    where the document has them."""

    text: str
    labels: Labels


def failed_parts(text: str) -> tuple[ConnectorPart, ...]:
    """Return the failed parts of a Connect document, a connector before its tasks; an empty tuple for any other text."""
    if f'"{_FAILED}"' not in text or '"trace"' not in text:
        return ()
    return tuple(part for part, failed in _parts(text) if failed)


def stated_parts(text: str) -> tuple[ConnectorPart, ...]:
    """Return the parts of a connector's status in any state, a connector before its tasks; an empty tuple for other texts."""
    if '"state"' not in text or '"connector"' not in text:
        return ()
    return tuple(part for part, _ in _parts(text) if "connector" in part.labels)


def about_torn(text: str) -> Labels:
    """Return the connector and the first failed task of a status that is not valid JSON: cut off, or with unescaped quotes. An
    empty mapping for any other text."""
    name = _NAME.match(text)
    if name is None or f'"{_FAILED}"' not in text:
        return {}
    task = _TASK.search(text)
    return {"connector": name[1]} if task is None else {"connector": name[1], "task": task[1]}


def _parts(text: str) -> Iterator[tuple[ConnectorPart, bool]]:
    """Yield the parts of a document, and whether each has failed."""
    try:
        document = foreign(text, strict=False)
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict):
        yield from _of_document(document)


def _of_document(document: Mapping[str, Any]) -> Iterator[tuple[ConnectorPart, bool]]:
    if isinstance(document.get("connector"), dict):
        yield from _of_connector(document)
    elif "state" in document:
        yield from _of_part(document, {})
    else:
        for expanded in document.values():
            if isinstance(expanded, dict) and isinstance(expanded.get("status"), dict):
                yield from _of_connector(expanded["status"])


def _of_connector(status: Mapping[str, Any]) -> Iterator[tuple[ConnectorPart, bool]]:
    labels = {"connector": status["name"]} if isinstance(status.get("name"), str) else {}
    tasks = status.get("tasks")
    itself = status.get("connector")
    if isinstance(itself, dict) and isinstance(status.get("type"), str):
        itself = {**itself, "type": status["type"]}
    for part in (itself, *(tasks if isinstance(tasks, list) else ())):
        if isinstance(part, dict):
            yield from _of_part(part, labels)


def _of_part(part: Mapping[str, Any], labels: Labels) -> Iterator[tuple[ConnectorPart, bool]]:
    trace, state = part.get("trace"), part.get("state")
    if not isinstance(state, str):
        return
    failed = state == _FAILED and isinstance(trace, str)
    task = {"task": str(part["id"])} if isinstance(part.get("id"), int) else {}
    worker = {"worker": _worker(part["worker_id"])} if isinstance(part.get("worker_id"), str) else {}
    text = str(trace) if failed else dumps({key: value for key, value in part.items() if key != "trace"})
    yield ConnectorPart(text, {**labels, **task, **worker}), failed


def _worker(worker_id: str) -> str:
    """Return the host of `host:port` when it is a name; else `worker_id`, since workers at one address differ by their port."""
    host, _, _ = worker_id.rpartition(":")
    return host if host and not host.replace(".", "").isdigit() and ":" not in host and host != "localhost" else worker_id
