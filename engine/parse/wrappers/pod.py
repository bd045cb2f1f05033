"""The prefix of `kubectl logs --prefix`, `[pod/kafka-0/kafka] <line>`, and of kail, `shop/kafka-0[kafka]: <line>`. Each
container becomes a source of its own.

Source: kubectl, logs command, flag --prefix: "the pod name and container name"; kail, README: namespace/pod[container].
"""

from __future__ import annotations

import re
import string

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "[" + string.ascii_lowercase
ORDER = 40
_PREFIX = re.compile(
    r"\[pod/(?P<pod>[a-z0-9][a-z0-9.-]{0,252})/(?P<container>[a-z0-9][a-z0-9-]{0,62})\] ?"
    r"|[a-z][a-z0-9-]{0,62}/(?P<kail>[a-z0-9][a-z0-9.-]{0,252})\[(?P<inside>[a-z][a-z0-9-]{0,62})\]: "  # not a process id
)


def unwrap(record: Record) -> Record | None:
    """Return the container's line as a record of the container's source, `<file>#<pod>/<container>`."""
    prefix = None if "#" in record.source_id else _PREFIX.match(record.text)
    if prefix is None:
        return None
    pod, container = prefix["pod"] or prefix["kail"], prefix["container"] or prefix["inside"]
    labels = {**record.labels, "pod": pod, "container": container}
    return replace(record, source_id=f"{record.source_id}#{pod}/{container}", text=record.text[prefix.end() :], labels=labels)
