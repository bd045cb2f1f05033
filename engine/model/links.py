"""Addresses that lead on from an incident: its own page, and its time and place in Kibana.

Source of Kibana's addresses: elastic/kibana, src/plugins/discover/common/app_locator_get_location.ts. Until 7.8 Discover lay
below /app/kibana, since 8.15 the data view is named by `dataSource` instead of `index`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from msgspec import Struct, field

from engine.model.incidents import Incident

AROUND = timedelta(minutes=5)  # what Kibana shows before and after the incident
_PLAIN = "!(),:'@$*-_.~/"  # what rison needs, and a fragment may hold as it is


class Link(Struct, frozen=True):
    """`kind`: incident, incidents or kibana; a key of the JSON that webhooks are sent."""

    kind: str
    url: str

    @property
    def title(self) -> str:
        """What a reader clicks on."""
        return {"incident": "Incident page", "incidents": "All incidents", "kibana": "Logs in Kibana"}[self.kind]


class Kibana(Struct, frozen=True):
    """A Kibana that holds the logs. `url` has no slash at its end, `fields` names the document's field for a label."""

    url: str
    data_view: str
    version: tuple[int, int] = (8, 15)
    space: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def address(self, incident: Incident) -> str:
        """Return Discover around the incident's time, narrowed by its labels; empty when its lines bear no time."""
        end = incident.resolved_at or incident.last_seen
        if incident.first_seen is None or end is None:
            return ""
        times, state = _times(incident.first_seen - AROUND, end + AROUND), self._state(incident)
        path = "/app/discover#/" if self.version >= (7, 9) else "/app/kibana#/discover"
        space = f"/s/{quote(self.space, '')}" if self.space else ""
        return f"{self.url}{space}{path}?_g={quote(times, _PLAIN)}&_a={quote(state, _PLAIN)}"

    def _state(self, incident: Incident) -> str:
        view = _rison(self.data_view)
        source = f"dataSource:(dataViewId:{view},type:dataView)" if self.version >= (8, 15) else f"index:{view}"
        return f"(columns:!(message),{source},query:(language:kuery,query:{_rison(self._query(incident))}))"

    def _query(self, incident: Incident) -> str:
        """Return the labels in Kibana's query language; a label that no field is known for narrows nothing."""
        known = [(field_, incident.labels.get(label, "")) for label, field_ in self.fields.items()]
        return " and ".join(f'{name}: "{_quoted(value)}"' for name, value in known if value)


class LinkTargets(Struct, frozen=True):
    """Where a reader can go on from an incident. Empty parts give no link; `public_url` has no slash at its end."""

    public_url: str = ""
    kibana: Kibana | None = None

    def of(self, incident: Incident) -> tuple[Link, ...]:
        """Return the links of `incident`; one that became part of another leads to the page of that one."""
        return tuple(self._links(incident))

    def of_all(self) -> tuple[Link, ...]:
        """Return the link to the list of incidents."""
        return (Link("incidents", f"{self.public_url}/"),) if self.public_url else ()

    def _links(self, incident: Incident) -> Iterator[Link]:
        if self.public_url:
            yield Link("incident", f"{self.public_url}/incidents/{quote(incident.merged_into or incident.id, '')}")
        if self.kibana is not None and (address := self.kibana.address(incident)):
            yield Link("kibana", address)


NO_LINKS = LinkTargets()


def _times(start: datetime, end: datetime) -> str:
    return f"(time:(from:{_rison(_instant(start))},to:{_rison(_instant(end))}))"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _rison(text: str) -> str:
    """Return a text of rison, the notation of Kibana's addresses."""
    escaped = re.sub(r"([!'])", r"!\1", text)
    return f"'{escaped}'"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
