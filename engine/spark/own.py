"""What tocsin says of its own input, as events: matched and correlated as log lines are, but apart from them. Pure.

They are judged in processing time, which ticks move (DESIGN 4.2), and no verdict about the logs waits for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, MutableMapping, Sequence

from engine.codec import dumps, loads
from engine.correlate import Correlator
from engine.correlate.clocks import LATENESS
from engine.model.incidents import Evidence, Verdict
from engine.model.matches import Seen
from engine.model.records import LogEvent, Tick
from engine.model.rules import OWN
from engine.spark.rows import Loss, Notice
from engine.spark.slices import Rules

_STATE = "own:"


def event(said: Loss | Notice, scope: str) -> LogEvent:
    """Return what is said as an event of the source OWN; the same thing said again is the same event."""
    text = said.sentence if isinstance(said, Loss) else said.text
    identity = hashlib.sha256("\0".join((OWN, scope, said.at.isoformat(), text)).encode("utf-8", "replace")).hexdigest()[:16]
    labels = {"cluster": scope, "source": OWN}
    return LogEvent(identity, OWN, 0, 0, said.at, said.at, text, text, level="WARN", logger=OWN, labels=labels)


def judged(
    events: Iterable[LogEvent], ticks: Sequence[Tick], rules: Rules, scope: str, state: MutableMapping[str, str]
) -> list[Verdict | Evidence]:
    """Return what the rules say of a batch of events and ticks; what they know is one part of `state`, once there is any."""
    matches = [match for event in events for match in rules.matcher.match_event(event)]
    stored = state.get(_STATE)
    if not matches and (stored is None or not ticks):
        return []
    known: dict[str, str] = loads(stored or "{}", dict[str, str])
    correlator = Correlator(rules.plan, scope, known)
    for match in matches:
        correlator.observe(match)
    for tick in ticks:
        come = tick.at + LATENESS  # nothing that we say ourselves comes late
        correlator.observe(Seen(OWN, come, come))
        correlator.observe(tick)
    found = [finding for finding in correlator.flush() if isinstance(finding, Verdict | Evidence)]
    state[_STATE] = dumps(known)
    return found
