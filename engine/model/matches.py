"""Output of the matcher: matches, and the activity of sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.records import NO_LABELS, Labels

Value = str | int | float
COMPONENT_LINE = "component:"  # the prefix of the rule ids of the lines of components


class Match(Struct, frozen=True, array_like=True, gc=False):
    """A signature that matched one event; text and captures are already redacted.

    At most one per (signature, event). `at` is event time, or ingest time when not `dated`. `text` is the evidence, at most
    4 kB; `origin` is the event's. `items` are the items that held, sorted: those alone that an expression about alerts of the
    rule names. `rule_id` may also name a line of a component: `component:<name>/names`, `/version`,
    `/heartbeat`, a sign of a state (`state_sign`), or an answer of a server that was asked (`answer_sign`).
    """

    rule_id: str
    event_id: str
    source_id: str
    number: int
    at: datetime
    dated: bool
    captures: Mapping[str, Value] = {}
    labels: Labels = NO_LABELS
    text: str = ""
    origin: str = ""
    items: tuple[str, ...] = ()


def state_sign(component: str, state: str, phase: int, edge: str) -> str:
    """Return the `rule_id` of a line that begins or ends (`edge`) a phase of a state; STATE_SIGN reads it."""
    return f"{COMPONENT_LINE}{component}/{state}/{phase}/{edge}"


def answer_sign(component: str, kind: str, is_gone: bool = False) -> str:
    """Return the `rule_id` of a line that states a fact of `kind`, or that what it is about is gone; ANSWER_SIGN reads it."""
    return f"{COMPONENT_LINE}{component}/answers/{kind}/{'gone' if is_gone else 'is'}"


class ActivitySpan(Struct, frozen=True, gc=False):
    """`source_id` wrote events at `first` and at `last`, without a pause of SEEN_GAP_S or longer between the two.

    The union of spans does not depend on how the input was cut into batches. Only dated events count. `place` is the offset of
    one of them in the source; None where offsets give no order, as in a source that is spread over several partitions.
    """

    source_id: str
    first: datetime
    last: datetime
    labels: Labels = field(default_factory=dict)
    place: int | None = None


STATE_SIGN = re.compile(r"component:(?P<component>[^/]+)/(?P<state>[^/]+)/(?P<phase>\d+)/(?P<edge>begins|ends)")
ANSWER_SIGN = re.compile(r"component:(?P<component>[^/]+)/answers/(?P<kind>[^/]+)/(?P<edge>is|gone)")
SEEN_GAP_S = 60.0
EVIDENCE_BYTES = 4096
