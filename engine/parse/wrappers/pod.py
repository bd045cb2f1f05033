"""The prefix of `kubectl logs --prefix`: `[pod/kafka-0/kafka] <line>`. Each container becomes a source of its own.

Source: kubectl, logs command, flag --prefix: "the pod name and container name".
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "["
ORDER = 40
_PREFIX = re.compile(r"\[pod/([a-z0-9][a-z0-9.-]{0,252})/([a-z0-9][a-z0-9-]{0,62})\] ?")


def unwrap(record: Record) -> Record | None:
    """Return the container's line in the container's source, `<file>#<pod>/<container>`."""
    found = None if "#" in record.source_id else _PREFIX.match(record.text)
    if found is None:
        return None
    pod, container = found.groups()
    labels = {**record.labels, "pod": pod, "container": container}
    return replace(record, source_id=f"{record.source_id}#{pod}/{container}", text=record.text[found.end() :], labels=labels)
