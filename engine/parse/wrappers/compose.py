"""Docker Compose's prefix: `kafka_1  | <line>`. Each container becomes a source of its own, `<file>#kafka_1`.

The name is padded with blanks. One blank follows the bar; the rest is the line, with its indentation. Compose's own message
`kafka_1 exited with code 137` is an event of that container.
"""

from __future__ import annotations

import re
import string

from msgspec.structs import replace

from engine.model.records import Record

FIRST = string.ascii_letters
ORDER = 40
_PREFIX = re.compile(r"([A-Za-z][\w.@-]{0,127})\s{1,200}[|\u2502] ?")  # with @ it is a task of a swarm
_EXIT = re.compile(r"([A-Za-z][\w.-]{0,127}) exited with code \d{1,3}(?: \(restarting\))?\s*$")


def unwrap(record: Record) -> Record | None:
    """Return the container's line as a record of the container's source. A line that is of a container already has no other
    such prefix."""
    if "#" in record.source_id:
        return None
    if prefix := _PREFIX.match(record.text):
        return _inside(record, prefix[1], record.text[prefix.end() :])
    if exited := _EXIT.match(record.text):
        return replace(_inside(record, exited[1], record.text), starts=True)
    return None


def _inside(record: Record, container: str, text: str) -> Record:
    labels = {**record.labels, "container": container}
    return replace(record, source_id=f"{record.source_id}#{container}", text=text, labels=labels)
