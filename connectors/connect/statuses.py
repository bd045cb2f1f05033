"""From two inventories of a Kafka Connect cluster to lines. Pure.

A line is a document of Connect's REST API: the status of a connector, with those of its tasks that have changed. So the parser
reads it like a status that somebody pasted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from engine.codec import dumps

Status = Mapping[str, Any]  # of a connector, as GET /connectors/{name}/status gives it
ITSELF = ""  # the name of the connector itself among its parts; a task is named by its number

MOST_TRACES = 100_000  # characters of traces in a line; the parser reads 256 KiB of one


class ConnectInventory(Struct, frozen=True):
    """What a Connect cluster holds: for each connector, a digest of the state of each of its parts (ITSELF and the tasks), and
    the topics that it has used since its start, as far as they were asked for."""

    version: str
    parts: Mapping[str, Mapping[str, str]]
    topics: Mapping[str, tuple[str, ...]] = {}

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return sum(len(parts) - 1 for parts in self.parts.values())


def inventory_of(version: str, statuses: Sequence[Status]) -> ConnectInventory:
    """Return what the statuses of all connectors say."""
    return ConnectInventory(version, {status["name"]: dict(_digests(status)) for status in statuses})


def lines_of(statuses: Sequence[Status], before: ConnectInventory | None, whole: bool) -> list[str]:
    """Return the lines of connectors of which a part has changed since `before`, or of all if `whole`, in order of name."""
    lines = list[str]()
    for status in sorted(statuses, key=lambda status: str(status["name"])):
        digests_before = before.parts.get(status["name"], {}) if before is not None else {}
        changed = frozenset(part for part, digest in _digests(status) if whole or digests_before.get(part) != digest)
        lines += _documents(status, changed) if changed else ()
    return lines


def to_ask_topics(after: ConnectInventory, before: ConnectInventory | None, whole: bool) -> list[str]:
    """Return the connectors whose topics to ask for, in order: all of them if `whole`, else those of which a part has changed,
    or whose topics were never listed."""
    if before is None or whole:
        return sorted(after.parts)
    return [name for name, parts in sorted(after.parts.items()) if before.parts.get(name) != parts or name not in before.topics]


def topics_line(name: str, topics: Sequence[str]) -> str:
    """Return the document of a connector's topics."""
    return dumps({name: {"topics": list(topics)}})


def gone(before: ConnectInventory | None, after: ConnectInventory) -> list[tuple[str, str]]:
    """Return connector and part of all that was there before and is not after, in order, a connector after its tasks."""
    parts = () if before is None else ((name, part) for name, parts in before.parts.items() for part in parts)
    missing = [(name, part) for name, part in parts if part not in after.parts.get(name, {})]
    return sorted(missing, key=lambda pair: (pair[0], pair[1] == ITSELF, pair[1]))


def with_parts(inventory: ConnectInventory, parts: Sequence[tuple[str, str]], of: ConnectInventory) -> ConnectInventory:
    """Return `inventory` with `parts` as they are in `of`."""
    merged = {name: dict(digests) for name, digests in inventory.parts.items()}
    for name, part in parts:
        merged.setdefault(name, {})[part] = of.parts[name][part]
    return ConnectInventory(inventory.version, merged, inventory.topics)


def _digests(status: Status) -> Iterator[tuple[str, str]]:
    yield ITSELF, _digest(status["connector"])
    for task in status["tasks"]:
        yield str(task["id"]), _digest(task)


def _digest(part: Mapping[str, Any]) -> str:
    trace = hashlib.sha256(str(part.get("trace", "")).encode("utf-8", "replace")).hexdigest()[:16]
    return f"{part.get('state')} {part.get('worker_id')} {trace}"


def _documents(status: Status, changed: frozenset[str]) -> Iterator[str]:
    """Yield the status with its changed tasks, in several documents if their traces are long. The trace of the connector
    stands in the first one only, and only if the connector has changed: without its trace a failure is not reported again."""
    itself = status["connector"] if ITSELF in changed else _traceless(status["connector"])
    tasks, size = list[Mapping[str, Any]](), len(str(itself.get("trace", "")))
    for task in status["tasks"]:
        if str(task["id"]) not in changed:
            continue
        shortened = _shortened(task)
        length = len(str(shortened.get("trace", "")))
        if tasks and size + length > MOST_TRACES:
            yield _document(status, itself, tasks)
            itself, tasks, size = _traceless(itself), [], 0
        tasks.append(shortened)
        size += length
    yield _document(status, itself, tasks)


def _document(status: Status, itself: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    parts = {"name": status["name"], "connector": _shortened(itself), "tasks": tasks}  # in the order of Connect's own document
    return dumps({**parts, **{key: value for key, value in status.items() if key not in parts}})


def _traceless(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in part.items() if key != "trace"}


def _shortened(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part whose trace is no longer than MOST_TRACES: its innermost cause, which stands last, remains."""
    trace = part.get("trace")
    if not isinstance(trace, str) or len(trace) <= MOST_TRACES:
        return part
    half = MOST_TRACES // 2
    return {**part, "trace": f"{trace[:half]}\n\t... {len(trace) - 2 * half} characters left out\n\t{trace[-half:]}"}
