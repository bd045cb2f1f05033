"""Whether a receiver has to be told of an incident, and why: a pure decision over what it was told last."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.incidents import Incident

_SILENT_ENDS = frozenset(("merged", "retracted"))


@dataclass(frozen=True, slots=True)
class Told:
    """What a receiver knows of an incident."""

    rule: str
    status: str
    severity: str
    stage: str = ""


def told(incident: Incident) -> Told:
    """Return what a receiver knows once it was told of `incident`."""
    return Told(incident.rule, incident.status, incident.severity, incident.stage)


def reason_to_tell(last: Told | None, incident: Incident) -> str | None:
    """Return opened, root_changed, merged, resolved or updated; None when there is nothing new to say.

    Growing counts and new evidence are nothing new. An incident that was never told and is already merged or retracted was
    nobody's business.
    """
    if incident.pending or last == told(incident):
        return None
    if last is None:
        return None if incident.status in _SILENT_ENDS else "opened"
    if incident.status != last.status and incident.status in ("merged", "resolved"):
        return incident.status
    return "root_changed" if incident.rule != last.rule else "updated"
