"""Earlier incidents of the rule of an incident, and what people wrote about them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from engine.model.acts import Act, ActKind
from engine.model.incidents import Incident
from engine.model.words import marked, worded

ENTITY, CLUSTER, ELSEWHERE = "entity", "cluster", "elsewhere"
_WORDS = marked("same entity", "same cluster", "another cluster")
NEAR_WORDS: Mapping[str, str] = dict(zip((ENTITY, CLUSTER, ELSEWHERE), _WORDS, strict=True))
MOST_OF_A_NEARNESS = 3
MOST_REMARKS = 5
REMARKED_BY = (  # the acts whose text tells the next person something
    ActKind.NOTE,
    ActKind.ACKNOWLEDGE,
    ActKind.RESOLVE,
    ActKind.REOPEN,
    ActKind.USEFUL,
    ActKind.NOT_USEFUL,
)


class PastIncident(Struct, frozen=True):
    """An earlier incident of the same rule, as it is shown.

    `near`: ENTITY, it is about the same entity; CLUSTER, about another one of the same cluster; or ELSEWHERE. `remarks` are its
    last MOST_REMARKS acts with a text, of the kinds REMARKED_BY, oldest first.
    """

    incident: Incident
    near: str
    remarks: tuple[Act, ...] = ()

    @property
    def ending(self) -> str:
        """Its state and how it came to that: `resolved (quiet, not confirmed)` by the logs, `resolved by mina` by a person,
        whose reason is a remark."""
        incident, handling = self.incident, self.incident.handling
        if handling is not None and handling.state == incident.status:
            return worded("{status} by {person}", status=incident.status, person=handling.by)
        return worded("{change} ({why})", change=incident.status, why=incident.why) if incident.why else incident.status


class Past(Struct, frozen=True):
    """The nearest earlier incidents of the rule of an incident: those of its entity, then of its cluster, then others, at most
    MOST_OF_A_NEARNESS of each; of these first those that people acted on, then the latest. `total`: how many there are in all.
    """

    incidents: tuple[PastIncident, ...] = ()
    total: int = 0


NO_PAST = Past()
