"""The prefix that syslog and journalctl put before each line: `Oct  5 17:05:39 broker-1 kafka-server-start.sh[4711]: <line>`.

The short stamp has no year; the ingest time gives it. The stamps of `journalctl -o short-iso` and of RFC 5424 have one.
A relay may leave the priority, `<134>`, in front. Source: RFC 3164 section 4.1, RFC 5424 section 6, journalctl(1).
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "<ADFJMNOS12"
ORDER = 25
_SHORT = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_LONG = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
_PREFIX = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:({_SHORT})|({_LONG})) ([\w.-]{{1,253}}) (?:[\w./@:-]{{1,128}}\[\d{{1,10}}\]|kernel|systemd): ?"
)
_RFC5424 = re.compile(
    rf"<\d{{1,3}}>1 (?:({_LONG})|-) ([\w.-]{{1,253}}) \S{{1,48}} \S{{1,128}} \S{{1,32}} (?:-|\[[^\]]{{0,1000}}\])(?: \ufeff?|$)"
)
_PRIORITY = re.compile(r"<(?:1?[0-8]?\d|19[01])>")


def unwrap(record: Record) -> Record | None:
    """Return the line that the process printed, with the name of the machine as the label `host`."""
    if prefix := _PREFIX.match(record.text):
        return _inside(record, prefix, prefix[1] or prefix[2], prefix[3])
    if prefix := _RFC5424.match(record.text):
        return _inside(record, prefix, prefix[1], prefix[2])
    priority = _PRIORITY.match(record.text)
    return None if priority is None else replace(record, text=record.text[priority.end() :])


def _inside(record: Record, prefix: re.Match[str], stamp: str | None, host: str) -> Record:
    layout = "iso" if stamp and stamp[0].isdigit() else "month_day"
    labels = {"host": host, **record.labels}
    return replace(record, text=record.text[prefix.end() :], labels=labels, **dated(record, stamp or "", layout))
