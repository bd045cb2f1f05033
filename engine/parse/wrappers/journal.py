"""What syslog and journalctl put before each line: `Oct  5 17:05:39 broker-1 kafka-server-start.sh[4711]: <line>`.

The short stamp has no year, so it is no time; the one of `journalctl -o short-iso` and RFC 5424 relays is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from engine.model.records import Record
from engine.parse.times import parse_stamp, zone_of

FIRST = "ADFJMNOS12"
ORDER = 25
_PREFIX = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)))"
    r" ([\w.-]{1,253}) [\w./@:-]{1,128}\[\d{1,10}\]: ?"
)


def unwrap(record: Record) -> Record | None:
    """Return the line that the process printed, with the machine as its label `host`."""
    found = _PREFIX.match(record.text)
    if found is None:
        return None
    at = parse_stamp(found[1], "iso", zone_of(record.labels.get("timezone", ""))) if found[1] else None
    labels = {"host": found[2], **record.labels}
    return replace(record, text=record.text[found.end() :], at=at or record.at, labels=labels)
