"""What shippers write into the documents around log lines: the names of their fields, whatever carries the documents. Pure.

A shipper (Filebeat, Elastic Agent, Fluent Bit, Vector, kafka-python in a script) names the host and the file that a line is
from; those name the source. What a document says besides is for engine/parse/wrappers to read. Source of the field names: ECS
field reference; Fluent Bit, Kubernetes filter; Docker, fluentd logging driver (whose `source` is stdout or stderr); Vector,
docker_logs and journald.
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
    *("kubernetes.container_name", "kubernetes.container.name", "container_name", "container.name"),  # what it is printed by
    *("_SYSTEMD_UNIT", "systemd.unit", "source"),
)
LONGEST_NAME = 4096


def value_at(document: Mapping[str, Any], name: str) -> Any:
    """Return the value under a dotted name, which is a key itself or leads from one mapping to the next; None for none."""
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return value_at(inner, rest) if isinstance(inner, dict) else None


def first_text(document: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first of `names` that holds text. Half a surrogate pair, which no text can hold, is a question mark."""
    for name in names:
        if isinstance(value := value_at(document, name), str):
            return value.encode("utf-8", "replace").decode()
    return None


def named(document: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of `names` that holds text; empty for none, or for what is too long to be a name."""
    name = first_text(document, names) or ""
    return name if len(name) <= LONGEST_NAME else ""


def source_name(carrier: str, host: str, file: str, otherwise: str) -> str:
    """Return the source_id of lines that `carrier` (a topic, a pattern of indices) brings: by host and file, or as `otherwise`
    says where a document names neither. `#` is escaped because it names containers inside a stream (model/records)."""
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
