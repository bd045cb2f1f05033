"""What tocsin says of its own input, as events: matched and correlated as log lines are, but apart from them. Pure.

They are judged in processing time, which ticks move, and no verdict about the logs waits for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, MutableMapping, Sequence
from datetime import UTC, datetime

from engine.codec import dumps, loads
from engine.correlate import Correlator
from engine.correlate.clocks import LATENESS
from engine.match import matched_of
from engine.model.incidents import Evidence, Verdict
from engine.model.matches import ActivitySpan
from engine.model.quarantine import DeadLetter
from engine.model.records import LogEvent, Tick
from engine.model.rules import OWN
from engine.quarantine import Quarantine
from engine.spark.rows import InputLoss, InputNotice
from engine.spark.slices import CompiledRules

_STATE = "own:"
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def event(said: InputLoss | InputNotice, scope: str) -> LogEvent:
    """Return what is said as an event of the source OWN; the same thing said again is the same event."""
    text = said.sentence if isinstance(said, InputLoss) else said.text
    identity = hashlib.sha256("\0".join((OWN, scope, said.at.isoformat(), text)).encode("utf-8", "replace")).hexdigest()[:16]
    labels = {"cluster": scope, "source": OWN}
    return LogEvent(identity, OWN, 0, 0, said.at, said.at, text, text, level="WARN", logger=OWN, labels=labels)


def notice_of(letter: DeadLetter) -> InputNotice:
    """Return what is said of dead letters of one source and stage."""
    return InputNotice(letter.at or UNKNOWN_TIME, f"{letter.matter} in quarantine ({letter.stage}): {letter.error}")


def judged(
    events: Iterable[LogEvent],
    ticks: Sequence[Tick],
    rules: CompiledRules,
    scope: str,
    state: MutableMapping[str, str],
    quarantine: Quarantine | None = None,
) -> list[Verdict | Evidence]:
    """Return what the rules say of a batch of events and ticks; what they know is one part of `state`, once there is any.
    What raises goes into `quarantine`; without one it is raised."""
    matches = [match for event in events for match in matched_of(rules.matcher, event, quarantine)]
    stored = state.get(_STATE)
    if not matches and (stored is None or not ticks):
        return []
    known: dict[str, str] = loads(stored or "{}", dict[str, str])
    correlator = Correlator(rules.plan, scope, known, quarantine=quarantine)
    for match in matches:
        correlator.observe(match)
    for tick in ticks:
        come = tick.at + LATENESS  # nothing that we say ourselves comes late
        correlator.observe(ActivitySpan(OWN, come, come))
        correlator.observe(tick)
    found = [finding for finding in correlator.flush() if isinstance(finding, Verdict | Evidence)]
    state[_STATE] = dumps(known)
    return found
