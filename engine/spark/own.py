"""Turn notices about tocsin's own input into events, and match and correlate these apart from the logs. Pure.

They are judged in processing time, which ticks advance, and no verdict about the logs waits for them.
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


def event_of_notice(notice: InputLoss | InputNotice, scope: str) -> LogEvent:
    """Return a notice as an event of the source OWN; the same notice repeated is the same event."""
    text = notice.sentence if isinstance(notice, InputLoss) else notice.text
    identity = hashlib.sha256("\0".join((OWN, scope, notice.at.isoformat(), text)).encode("utf-8", "replace")).hexdigest()[:16]
    labels = {"cluster": scope, "source": OWN}
    return LogEvent(identity, OWN, 0, 0, notice.at, notice.at, text, text, level="WARN", logger=OWN, labels=labels)


def notice_of(letter: DeadLetter) -> InputNotice:
    """Return the notice about a letter that sums up those of one source and stage."""
    return InputNotice(letter.at or UNKNOWN_TIME, f"{letter.matter} in quarantine ({letter.stage}): {letter.error}")


def evaluate_own(
    events: Iterable[LogEvent],
    ticks: Sequence[Tick],
    rules: CompiledRules,
    scope: str,
    state: MutableMapping[str, str],
    quarantine: Quarantine | None = None,
) -> list[Verdict | Evidence]:
    """Return the findings of the rules about tocsin in a batch of events and ticks.

    Args:
        state: the scope's state, of which the correlation state of these rules is one entry; the entry is created by the first
            match.
        quarantine: takes events and matches that a stage fails on; without one the error is raised.
    """
    matches = [match for event_of_notice in events for match in matched_of(rules.matcher, event_of_notice, quarantine)]
    stored = state.get(_STATE)
    if not matches and (stored is None or not ticks):
        return []
    correlation_state: dict[str, str] = loads(stored or "{}", dict[str, str])
    correlator = Correlator(rules.plan, scope, correlation_state, quarantine=quarantine)
    for match in matches:
        correlator.observe(match)
    for tick in ticks:
        activity_at = tick.at + LATENESS  # tocsin's own notices are never late
        correlator.observe(ActivitySpan(OWN, activity_at, activity_at))
        correlator.observe(tick)
    findings = [finding for finding in correlator.flush() if isinstance(finding, Verdict | Evidence)]
    state[_STATE] = dumps(correlation_state)
    return findings
