"""The output of `tocsin scan --format json`: one JSON document. Keys may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.cli.triage import Triage
from engine.cli.unknown import UnknownLines
from engine.codec import plain
from engine.model.answers import incident_value

SCHEMA = 1


def document(triage: Triage) -> Mapping[str, Any]:
    """Return the JSON value of a scan; times are ISO 8601 in UTC with Z, or null when the lines have none."""
    return {
        "schema": SCHEMA,
        "incidents": [incident_value(i) for i in triage.incidents],
        "pending": [incident_value(i) for i in triage.pending],
        "minor": [incident_value(i) for i in triage.minor],
        "unknown": [_unknown(group) for group in triage.unknown],
        "blind": [{"scope": b.scope, "what": b.what, "why": b.why} for b in triage.blind],
        "quarantined": [plain(letter) for letter in triage.quarantined],
        "coverage": plain(triage.coverage),
        "notes": list(triage.notes),
        "stats": {
            "lines": triage.stats.lines,
            "events": triage.stats.events,
            "matches": triage.stats.matches,
            "seconds": round(triage.stats.seconds, 3),
        },
    }


def _unknown(lines: UnknownLines) -> Mapping[str, Any]:
    return {
        "template": lines.template,
        "count": lines.count,
        "level": lines.level,
        "sample": lines.sample,
        "draft": lines.draft,
    }
