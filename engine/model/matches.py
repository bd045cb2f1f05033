"""What the matcher says of events: matches, and who was heard from when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.records import NO_LABELS, Labels

Value = str | int | float


class Match(Struct, frozen=True, array_like=True, gc=False):
    """A signature seen in one event; text and captures are already redacted.

    At most one per (signature, event). `at` is event time, or ingest time when not `dated`. `text` is the evidence, at most
    4 kB; `origin` is the event's. `rule_id` may also name a component's own line: `component:<name>/names`, `/version` or
    `/heartbeat`.
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


class ActivitySpan(Struct, frozen=True, gc=False):
    """`source_id` printed something at `first`, at `last`, and never paused for as long as SEEN_GAP_S between the two.

    Unions of these spans do not depend on how the input was cut into batches. Only dated events count. `place` is the position
    in the source of one of them; None where positions tell no order, as of a source that is read out of several partitions.
    """

    source_id: str
    first: datetime
    last: datetime
    labels: Labels = field(default_factory=dict)
    place: int | None = None


SEEN_GAP_S = 60.0
EVIDENCE_BYTES = 4096
