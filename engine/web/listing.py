"""Choose the incidents of the list: parse the query of an address and search the store for one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import UsageError
from engine.model.incidents import STATES, Incident
from engine.model.rules import SEVERITIES
from engine.model.searches import Search
from engine.model.words import worded

if TYPE_CHECKING:  # a report of a scan has no store
    from engine.store import Store

FINDINGS = ("open", "acknowledged", "resolved")  # shown without a state in the query
FACETS = ("component", "cluster", "rule", "receiver")
PAGE_SIZE = 100
MAX_PARAMETERS = 30
MAX_CHARACTERS = 1000  # of a parameter
MAX_WORDS = 8
UNPAGED = 2**31  # a page size that puts all incidents on one page
DAY = timedelta(hours=24)

GoingOn = tuple[str, datetime, datetime, int]  # severity, first and last hour of incidents, and their number


class Query(Struct, frozen=True):
    """The query of a list. An empty `state` selects FINDINGS; a label with an empty value matches any value; `q` is the text
    that is searched for. Other empty parts select everything."""

    state: str = ""
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    page: int = 1
    q: str = ""
    component: str = ""
    cluster: str = ""
    rule: str = ""
    receiver: str = ""

    def address(self, state: str | None = None, page: int = 1) -> str:
        """Return the address of a page of this query's list.

        Args:
            state: replaces the state of the query; "" for no state, None to keep it.
        """
        parts = [("q", self.q), ("status", self.state if state is None else state), ("severity", self.severity)]
        parts += [(name, getattr(self, name)) for name in FACETS]
        parts += [("label", label_text(name, value)) for name, value in self.labels]
        parts += [("page", str(page) if page > 1 else "")]
        parameters = [(name, value) for name, value in parts if value]
        return f"/?{urlencode(parameters)}" if parameters else "/"

    @property
    def narrows(self) -> bool:
        """Whether the list has a filter besides the state."""
        return replace(self, state="", page=1) != Query()

    def search(self) -> Search:
        """Return the search of the store for this query."""
        return Search(
            states=(self.state,) if self.state else FINDINGS,
            severity=self.severity,
            labels=self.labels,
            words=tuple(self.q.split()[:MAX_WORDS]),
            component=self.component,
            cluster=self.cluster,
            rule=self.rule,
            receiver=self.receiver,
        )


class Listing(Struct, frozen=True):
    """One page of the list.

    Attributes:
        shown: the incidents of the page.
        total: how many incidents match the query, on all pages.
        counts: how many incidents match by state, without regard to the state of the query.
        size: how many incidents a page shows at most.
        facets: the values by which the list can be narrowed, by name.
        going_on: the incidents of the last day, whatever the query.
    """

    query: Query
    shown: tuple[Incident, ...]
    total: int
    counts: Mapping[str, int]
    size: int = PAGE_SIZE
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    going_on: tuple[GoingOn, ...] = ()

    @property
    def pages(self) -> int:
        """The number of pages, at least one."""
        return max(1, -(-self.total // self.size))


def parse_query(parameters: Iterable[tuple[str, str]]) -> Query:
    """Return the query of an address's parameters; blank and unknown parameters are ignored.

    Raises UsageError when a parameter has a value that does not exist, or when there are too many or too long ones.
    """
    pairs = list(islice(parameters, MAX_PARAMETERS + 1))
    if len(pairs) > MAX_PARAMETERS:
        raise UsageError(worded("the address has more than {number} parameters; leave some of them out", number=MAX_PARAMETERS))
    if any(len(name) + len(text) > MAX_CHARACTERS for name, text in pairs):
        raise UsageError(
            worded("a parameter of the address is longer than {number} characters; shorten it", number=MAX_CHARACTERS)
        )
    query = Query()
    for name, text in pairs:
        value = text.strip()
        if not value:
            continue
        if name == "status":
            query = replace(query, state=_one_of(name, value, STATES))
        elif name == "severity":
            query = replace(query, severity=_one_of(name, value, SEVERITIES))
        elif name in ("q", *FACETS):
            query = replace(query, **{name: value})
        elif name == "label":
            label, _, label_value = value.partition("=")
            query = replace(query, labels=(*query.labels, (label.strip(), label_value.strip())))
        elif name == "page":
            query = replace(query, page=_page(value))
    return query


def list_incidents(store: Store, query: Query, now: datetime, size: int = PAGE_SIZE) -> Listing:
    """Return the page of `query`, ordered by state (open ones first), most severe first, last seen first. Raises StoreError."""
    search = query.search()
    shown, counts = store.search(search, size, (query.page - 1) * size)
    total = sum(counts[state] for state in search.states)
    return Listing(query, tuple(shown), total, counts, size, store.facets(), tuple(store.going_on(now - DAY)))


def state(incident: Incident) -> str:
    """Return the incident's status; `pending` while it waits to be confirmed."""
    return "pending" if incident.pending else incident.status


def lasted(incident: Incident) -> timedelta | None:
    """Return how long the incident lasted by the times of its lines; None below a second and without times."""
    end = incident.resolved_at or incident.last_seen
    if end is None or incident.first_seen is None or end - incident.first_seen < timedelta(seconds=1):
        return None
    return end - incident.first_seen


def label_text(name: str, value: str) -> str:
    """Return a label as a query writes it: `broker=1`, or `broker` for any value."""
    return f"{name}={value}" if value else name


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError(worded("there is no {id} `{text}`; known: {ids}", id=name, text=value, ids=", ".join(choices)))
    return value


def _page(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value) > 0):
        raise UsageError(worded("`{text}` is not a page number; give one from 1 to 999999", text=value))
    return int(value)
