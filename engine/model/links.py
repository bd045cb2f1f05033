"""Addresses that lead on from an incident: its own page, and Kibana at its time and place; and from each of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from engine.model import kibana as forms
from engine.model import narrowing
from engine.model.incidents import Evidence, Incident
from engine.model.kibana import LogView, MajorMinor
from engine.model.origins import origin_path
from engine.model.words import marked

AROUND = timedelta(minutes=2)  # what Kibana shows before and after an incident or a line
LONGEST = 3_000  # characters of an address: Slack takes no more

AUTO, DISCOVER, LOCATOR, ESQL, OPENSEARCH = "auto", "discover", "locator", "esql", "opensearch"
STYLES = (AUTO, DISCOVER, LOCATOR, ESQL, OPENSEARCH)
_KINDS = ("incident", "incidents", "kibana", "line", "around", "audit")
_WORDS = marked("Incident page", "All incidents", "Logs in Kibana", "In Kibana", "Around it in Kibana", "All risks")
_TITLES = dict(zip(_KINDS, _WORDS, strict=True))


class Link(Struct, frozen=True):
    """`kind`: incident, incidents, audit or kibana; of a line: line or around. A key of the JSON that webhooks are sent."""

    kind: str
    url: str

    @property
    def title(self) -> str:
        """The text of the link."""
        return _TITLES[self.kind]


class LineLinks(Struct, frozen=True):
    """The links of a line of evidence, and the query that finds its source in any version of Kibana."""

    links: tuple[Link, ...] = ()
    query: str = ""


class Kibana(Struct, frozen=True):
    """A Kibana (or OpenSearch Dashboards) that holds the logs. `url` has no slash at its end, `fields` names the document's
    field for a label, or for a part of a source's name (engine/model/narrowing).

    The logs are named by `data_view`, the id of a saved data view, or by `pattern`, the indices. `style` is one of STYLES;
    `tenant` is one of OpenSearch; `saved_search` is the id of a saved search in which the logs of an incident are shown.
    """

    url: str
    data_view: str = ""
    version: MajorMinor = (8, 15)
    space: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    style: str = AUTO
    time_field: str = "@timestamp"
    columns: tuple[str, ...] = ("message",)
    tenant: str = ""
    saved_search: str = ""

    def address(self, incident: Incident) -> str:
        """Return the address of Discover around the incident's time, filtered by the incident's query; empty when its lines
        have no time, or when no form is short enough."""
        end = incident.resolved_at or incident.last_seen
        if incident.first_seen is None or end is None:
            return ""
        narrowed = narrowing.of_incident(incident, self.fields)
        return self._fitting(self._view(incident.first_seen, end, narrowed, incident.id)) or self._first_line(incident)

    def query(self, incident: Incident) -> str:
        """Return the query that filters the logs by `incident`, to be copied."""
        return narrowing.kql(narrowing.of_incident(incident, self.fields))

    def of_line(self, event: Evidence, is_dated: bool) -> LineLinks:
        """Return the links of a line: to its document and those around it if it came from Elasticsearch, else to the logs of
        its source at its time, if it has one."""
        if path := origin_path(event.origin, "elasticsearch"):
            index, id_ = path
            links = [Link(kind, url) for kind, url in self._of_document(event, index, id_, is_dated) if url]
            return LineLinks(tuple(links), narrowing.kql(((("_id", id_), ("_index", index)),)))
        narrowed = narrowing.of_line(event, self.fields)
        address = self._fitting(self._view(event.at, event.at, narrowed, event.source_id)) if is_dated else ""
        return LineLinks((Link("line", address),) if address else (), narrowing.kql(narrowed))

    def _of_document(self, event: Evidence, index: str, id: str, is_dated: bool) -> Iterator[tuple[str, str]]:
        view = self._view(event.at, event.at, ((("_id", id),),), id)
        if self.style == OPENSEARCH or self.version < (7, 9) or not (self.data_view or self.version >= forms.AD_HOC_SINCE):
            yield "line", self._fitting(view)  # no form of its own, but a query that finds it
            return
        in_place = self._in_place(event, index, id) if is_dated and self.style != ESQL and self.version >= (9, 6) else ""
        if self.data_view:
            yield "line", in_place or self._bounded(forms.document(self.data_view, index, id))
            yield "around", self._bounded(forms.surrounding(self.data_view, id, self.columns))
        else:
            yield "line", in_place or self._bounded(forms.document_locator(view, self.version, index, id))
            yield "around", self._bounded(forms.surrounding_locator(view, self.version, id))

    def _in_place(self, event: Evidence, index: str, id: str) -> str:
        """Return the address of the logs of a line's source at its time, with its document opened beside them."""
        view = self._view(event.at, event.at, narrowing.of_line(event, self.fields), event.source_id)
        return self._fitting(replace(view, opened=(index, id)))

    def _view(self, start: datetime, end: datetime, narrowed: narrowing.Narrowing, title: str) -> LogView:
        return LogView(
            start - AROUND,
            end + AROUND,
            narrowing.kql(narrowed),
            narrowing.esql(narrowed, self.pattern, self.time_field) if self.style == ESQL else "",
            self.data_view,
            self.pattern,
            self.time_field,
            self.columns,
            title,
            self.saved_search,
        )

    def _fitting(self, view: LogView) -> str:
        """Return the address of a view that is short enough: without its columns, then without its query; empty when even that
        is too long."""
        everything = narrowing.esql((), self.pattern, self.time_field) if self.style == ESQL else ""
        without = replace(view, columns=())
        for shorter in (view, without, replace(without, kql="", esql=everything, title="")):
            if address := self._bounded(self._discover(shorter)):
                return address
        return ""

    def _discover(self, view: LogView) -> str:
        if self.style == ESQL:
            return forms.esql_discover(view, self.version)
        if self.style == OPENSEARCH:
            return forms.opensearch_discover(view, self.tenant) if self.version >= (2, 11) else forms.index_discover(view)
        if self.style == LOCATOR or (self.style == AUTO and self.version >= (7, 14)):
            return forms.locator(view, self.version)
        if self.version < (7, 9):
            return forms.legacy_discover(view)
        if self.version < (8, 15):
            return forms.index_discover(view)
        return forms.tab_discover(view) if self.version >= (9, 2) else forms.data_view_discover(view)

    def _first_line(self, incident: Incident) -> str:
        lines = [link for event in incident.evidence[:1] for link in self.of_line(event, is_dated=True).links]
        return lines[0].url if lines else ""

    def _bounded(self, place: str) -> str:
        space = f"/s/{quote(self.space, '')}" if self.space else ""
        address = f"{self.url}{space}{place}"
        return address if len(address) <= LONGEST else ""


class LinkTargets(Struct, frozen=True):
    """Where a reader can go on from an incident. Empty parts give no link; `public_url` has no slash at its end."""

    public_url: str = ""
    kibana: Kibana | None = None

    def of(self, incident: Incident) -> tuple[Link, ...]:
        """Return the links of `incident`; one that became part of another leads to the page of that one."""
        return tuple(self._links(incident))

    def of_lines(self, incident: Incident) -> Mapping[str, LineLinks]:
        """Return the links of each line of evidence, by event id; lines without links are left out."""
        if self.kibana is None:
            return {}
        is_dated = incident.first_seen is not None
        lines = {event.event_id: self.kibana.of_line(event, is_dated) for event in incident.evidence}
        return {event_id: line for event_id, line in lines.items() if line != LineLinks()}

    def query(self, incident: Incident) -> str:
        """Return the query that narrows the logs to `incident`, empty without a Kibana or when nothing does."""
        return self.kibana.query(incident) if self.kibana is not None else ""

    def of_all(self) -> tuple[Link, ...]:
        """Return the link to the list of incidents."""
        return (Link("incidents", f"{self.public_url}/"),) if self.public_url else ()

    def of_risks(self) -> tuple[Link, ...]:
        """Return the link to the page of risks."""
        return (Link("audit", f"{self.public_url}/audit"),) if self.public_url else ()

    def _links(self, incident: Incident) -> Iterator[Link]:
        if self.public_url:
            yield Link("incident", f"{self.public_url}/incidents/{quote(incident.merged_into or incident.id, '')}")
        if self.kibana is not None and (address := self.kibana.address(incident)):
            yield Link("kibana", address)


NO_LINKS = LinkTargets()
