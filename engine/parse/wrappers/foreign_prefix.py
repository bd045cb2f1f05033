"""The prefixes that other programs put before each line they pass on: service wrappers, build servers, log panels, `stern`,
Testcontainers.

Their form alone does not tell such prefixes from text. So one is removed only in front of a stamp, a part of a stack trace or a
JSON document.
"""

from __future__ import annotations

import re
import string

from msgspec.structs import replace

from engine.model.records import Record

FIRST = string.ascii_letters + string.digits + "[ "
ORDER = 35
_GOES_ON = r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:|\s+at [\w.$/<>-]{1,200}\(|Caused by: |Suppressed: |\s+\.\.\. \d+ more"
_EXCEPTION = r"(?:[a-z_]\w{0,60}\.){2,8}\w{1,120}(?:\$\w{1,120})?(?:Exception|Error)\b"
_POD = r"[a-z][a-z0-9.]{0,80}(?:-[a-z0-9]{1,60}){1,9}"
_PREFIXES = (
    r"(?:INFO|WARN|ERROR|FATAL|STATUS|DEBUG) {0,3}\|(?:[^|\n]{1,60}\|){2,3} ?",  # Java and Windows service wrappers
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,7}(?:Z|[+-]\d\d:\d\d) (?:##\[\w{1,20}\]|\w{1,20}\[[\w.-]{1,60}\]: )?",  # CI, Heroku
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\t",  # the export of a log panel
    # Cloud Foundry, then Splunk's time column
    r"\s{0,4}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}[+-]\d{4} \[[A-Z]{2,5}(?:/[\w-]{1,40}){0,4}\] ?(?:OUT|ERR) ",
    r"\d{1,2}/\d{1,2}/\d{2,4} \d{1,2}:\d\d:\d\d\.\d{3} [AP]M\s",
    # AWS Lambda: the time, the id of the request, the level
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\s)?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|undefined)\s[A-Z]{4,5}\s",
    # a log panel in the reader's language
    r"\d{4}/\d{1,2}/\d{1,2} (?:上午|下午|오전 |오후 |午前|午後)?\d{1,2}:\d\d:\d\d ?(?:[AaPp]\.?[Mm]\.? )?",
    rf"(?:[a-z][a-z0-9-]{{0,62}} )?{_POD} (?:\u203a )?[a-z][a-z0-9-]{{0,62}} ",  # stern: namespace (of all), pod and container
    rf"\[{_POD}\] ",  # viewers of the pods of a cluster
    r"\[Worker-[0-9a-f]{8,40}\] ",  # MSK Connect
    r"(?:\[[\w-]{1,20}\] )?STD(?:OUT|ERR): ",  # Testcontainers
    # Airbyte's worker; the line of an exception keeps the stamp, since without one it would belong to the line before
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:source|destination|replication-orchestrator) (?:> )?"
    rf"(?:(?:INFO|WARN|ERROR) )?(?!\[)(?={_GOES_ON})",
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [A-Z]{2,5} \d{4}: ",  # a script, with date(1)
)
_DOCUMENT = r"\{\"[\w@.]{1,40}\":"
_PREFIX = re.compile(f"(?:{'|'.join(_PREFIXES)})(?={_GOES_ON}|{_EXCEPTION}|{_DOCUMENT})")


def unwrap(record: Record) -> Record | None:
    """Return the line behind the prefix. The prefix's stamp is not used, since the line's own is better."""
    prefix = _PREFIX.match(record.text)
    return None if prefix is None else replace(record, text=record.text[prefix.end() :])
