"""Links from an incident: to its own page, and to the logs of its time in Kibana.

Source of Kibana's addresses: elastic/kibana, src/plugins/discover/common/app_locator_get_location.ts. Up to 7.8 Discover is
below /app/kibana; since 8.15 the data view is named by `dataSource` instead of `index`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from msgspec import Struct, field

from engine.model.incidents import Incident

AROUND = timedelta(minutes=5)  # shown before and after the incident
_PLAIN = "!(),:'@$*-_.~/"  # characters of rison that a URL fragment may hold unescaped


class Link(Struct, frozen=True):
    """`kind`: incident, incidents or kibana; a key of the JSON that webhooks are sent."""

    kind: str
    url: str

    @property
    def title(self) -> str:
        """The text of the link."""
        return {"incident": "Incident page", "incidents": "All incidents", "kibana": "Logs in Kibana"}[self.kind]


class Kibana(Struct, frozen=True):
    """A Kibana that holds the logs. `url` has no slash at its end, `fields` names the document's field for a label."""

    url: str
    data_view: str
    version: tuple[int, int] = (8, 15)
    space: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def address(self, incident: Incident) -> str:
        """Return the URL of Discover for the incident's time, filtered by its labels; empty when its lines have no stamps."""
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
        """Return a filter by labels in Kibana's query language; labels without a configured field are left out."""
        values = [(name, incident.labels.get(label, "")) for label, name in self.fields.items()]
        return " and ".join(f'{name}: "{_quoted(value)}"' for name, value in values if value)


class LinkTargets(Struct, frozen=True):
    """Configuration of the links. Empty parts give no link; `public_url` has no slash at its end."""

    public_url: str = ""
    kibana: Kibana | None = None

    def of(self, incident: Incident) -> tuple[Link, ...]:
        """Return the links of `incident`; a merged incident links to the page of the one it was merged into."""
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
    """Return `text` as a string of rison, the notation of Kibana's URLs."""
    escaped = re.sub(r"([!'])", r"!\1", text)
    return f"'{escaped}'"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
