"""Rules that matched lines about the entity of an incident in its time, and are no part of it; each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.records import Labels
from engine.model.words import marked

# why a rule is no part of an incident
APART, UNCONFIRMED, TAKEN_BACK, INFORMS = "apart", "unconfirmed", "taken back", "informs"
_WORDS = marked(
    "an incident of its own: nothing links it with this one",
    "not confirmed yet",
    "taken back: later lines contradict it",
    "it only informs: no trouble by itself, or not often enough",
)
CONSIDERED_WORDS: Mapping[str, str] = dict(zip((APART, UNCONFIRMED, TAKEN_BACK, INFORMS), _WORDS, strict=True))


class ConsideredRule(Struct, frozen=True):
    """The alerts of one rule that are no part of an incident, for one reason: APART, UNCONFIRMED or TAKEN_BACK, with the id and
    the title of the incident that they are part of, or INFORMS.

    `translations` are that title by language. `count` is the number of events, `labels` and `first_seen` are those of the
    first alert.
    """

    rule: str
    reason: str
    count: int
    labels: Labels
    first_seen: datetime
    incident: str = ""
    title: str = ""
    translations: Mapping[str, str] = field(default_factory=dict)
