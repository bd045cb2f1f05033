"""What people do about incidents: acts, and the result of all acts on one incident. Decided by engine/acting, stored for ever
by engine/store, never touched by the job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct

MOST_TEXT = 4000  # characters of a note or a reason
MOST_NAME = 200  # characters of a name
# what a silence may last where that is chosen from a list, by its words
SILENCE_SPANS: Mapping[str, timedelta] = {
    "30 min": timedelta(minutes=30),
    "1 h": timedelta(hours=1),
    "2 h": timedelta(hours=2),
    "4 h": timedelta(hours=4),
    "8 h": timedelta(hours=8),
    "1 d": timedelta(days=1),
    "3 d": timedelta(days=3),
    "7 d": timedelta(days=7),
}
USUAL_SPAN = "2 h"


class ActKind(str, Enum):
    """What a person does about an incident."""

    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    SILENCE = "silence"
    UNSILENCE = "unsilence"
    NOTE = "note"
    ASSIGN = "assign"
    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class SilenceScope(str, Enum):
    """What a silence is about: the incident, its rule in its cluster, or its entity, whatever the rule."""

    INCIDENT = "incident"
    RULE = "rule"
    ENTITY = "entity"


class Act(Struct, frozen=True):
    """Something that a person did about an incident. Acts with one `key` are one act, however often it arrives.

    `by` is the name to show; `account` identifies the person in the system that the act came through, where that differs from
    the name (Slack's user id). `via`: page | slack | command. `text` is the note, or why. `assignee`: who has it from then on;
    empty: nobody. `until` and `scope` belong to silences.

    The rest is set when it is stored (see engine/acting.noted): `until_seen`, `count` and `status` are what the logs had shown
    of the incident, and `silence` is the id of the silence that was added. Of an act that ends a silence it is given.
    """

    key: str
    incident: str
    kind: ActKind
    by: str
    via: str
    at: datetime
    text: str = ""
    account: str = ""
    assignee: str = ""
    until: datetime | None = None
    scope: SilenceScope = SilenceScope.INCIDENT
    until_seen: datetime | None = None
    count: int = 0
    status: str = ""
    silence: str = ""


class Handling(Struct, frozen=True):
    """The result of all acts on one incident.

    `state`: open | acknowledged | resolved, as `by` set it at `at` with the reason `why`; empty when people leave the state to
    the logs. It is in force while the logs show nothing newer than `until_seen` and `count` (see engine/acting). `owner` has
    the incident; empty: nobody. `useful`: whether it helped to be told; None: nobody judged. `acts` counts the acts.
    """

    state: str = ""
    by: str = ""
    at: datetime | None = None
    why: str = ""
    until_seen: datetime | None = None
    count: int = 0
    owner: str = ""
    is_assigned: bool = False
    useful: bool | None = None
    acts: int = 0


NO_HANDLING = Handling()


class ActOutcome(str, Enum):
    """The outcome of an act: done; unchanged, because it was so already; or refused."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class ActDecision(Struct, frozen=True):
    """The outcome of an act, and why in one sentence; the sentence of one that is done says what was done."""

    outcome: ActOutcome
    sentence: str


class RuleStats(Struct, frozen=True):
    """How people fared with a rule: how many of its incidents there were, somebody was told of, somebody acknowledged, and
    people called useful or not.

    `resolve_s`: the median of the seconds from the first event to the end of those that are resolved; None when none is.
    `reasons`: why they were called not useful, the last few.
    """

    rule: str
    incidents: int
    told: int
    acknowledged: int
    useful: int
    not_useful: int
    resolve_s: float | None = None
    reasons: tuple[str, ...] = ()
