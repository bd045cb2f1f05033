"""The fields of the documents that shippers write around log lines, for every carrier of documents. Pure.

A shipper (Filebeat, Elastic Agent, Fluent Bit, Vector, kafka-python in a script) names the host and the file of a line; these
name the source. engine/parse/wrappers reads the other fields. Source of the field names: ECS field reference; Fluent Bit,
Kubernetes filter; Docker, fluentd logging driver (whose `source` is stdout or stderr); Vector, docker_logs and journald.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

MESSAGE = ("message", "log")
HOST = ("host.name", "host.hostname", "host", "hostname", "agent.hostname", "kubernetes.pod.name", "kubernetes.pod_name")
FILE = (
    *("file", "log.file.path", "file.path", "filename", "path"),
    *("kubernetes.container_name", "kubernetes.container.name", "container_name", "container.name"),  # the printer
    *("_SYSTEMD_UNIT", "systemd.unit", "source"),
)
LONGEST_NAME = 4096


def value_at(document: Mapping[str, Any], name: str) -> Any:
    """Return the value under a dotted name, which is a key itself, or a path of keys through mappings; None when there is
    none."""
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return value_at(inner, rest) if isinstance(inner, dict) else None


def first_text(document: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the text of the first of `names` that has one; None when none has. Half a surrogate pair becomes a question
    mark."""
    for name in names:
        if isinstance(value := value_at(document, name), str):
            return value.encode("utf-8", "replace").decode()
    return None


def named(document: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the text of the first of `names` that has one; empty when none has, or when it is too long for a name."""
    name = first_text(document, names) or ""
    return name if len(name) <= LONGEST_NAME else ""


def source_name(carrier: str, host: str, file: str, otherwise: str) -> str:
    """Return the source_id of a line from `carrier` (a topic, a pattern of indices), with its host and file, or `otherwise`
    when the document names neither. `#` is escaped because it separates a container from its stream (model/records)."""
    name = f"{carrier}/{host}:{file}" if host and file else f"{carrier}/{host or file}" if host or file else otherwise
    return name.replace("#", "%23")


def document_type(names: Iterable[str], plain: Iterable[str] = ()) -> Any:
    """Return a msgspec type of documents that has the fields which these dotted names may mean, and no others.

    The attributes of `plain` names are called like them; `to_builtins` gives a mapping under the names that are in the JSON.
    """
    inner: dict[str, list[str]] = {}
    for name in names:
        head, _, rest = name.partition(".")
        inner.setdefault(head, []).extend([rest] if rest else [])
        inner.setdefault(name, [])
    as_named = frozenset(plain)
    keys = {key if key in as_named else f"at_{number}": key for number, key in enumerate(inner)}
    fields = [
        (name, document_type(inner[key]) | str | int | float | bool | UnsetType | None, UNSET) for name, key in keys.items()
    ]
    return msgspec.defstruct("_PartialDocument", fields, rename=keys, frozen=True, omit_defaults=True, gc=False)
