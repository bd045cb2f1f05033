"""Choose the incidents of the list: parse the query of an address and search the store for one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import UsageError
from engine.model.incidents import Incident
from engine.model.rules import SEVERITIES
from engine.store import STATES, Search, Store

FINDINGS = ("open", "acknowledged", "resolved")  # shown without a state in the query
PAGE_SIZE = 100
MAX_PARAMETERS = 30
MAX_CHARACTERS = 1000  # of a parameter
UNPAGED = 2**31  # a page size that puts all incidents on one page


class Query(Struct, frozen=True):
    """The query of a list. An empty `state` selects FINDINGS; a label with an empty value matches any value."""

    state: str = ""
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    page: int = 1

    def address(self, state: str | None = None, page: int = 1) -> str:
        """Return the address of a page of this query's list.

        Args:
            state: replaces the state of the query; "" for no state, None to keep it.
        """
        parts = [("status", self.state if state is None else state), ("severity", self.severity)]
        parts += [("label", label_text(name, value)) for name, value in self.labels]
        parts += [("page", str(page) if page > 1 else "")]
        parameters = [(name, value) for name, value in parts if value]
        return f"/?{urlencode(parameters)}" if parameters else "/"


class Listing(Struct, frozen=True):
    """One page of the list.

    Attributes:
        shown: the incidents of the page.
        total: how many incidents match the query, on all pages.
        counts: how many incidents match by state, without regard to the state of the query.
        size: how many incidents a page shows at most.
    """

    query: Query
    shown: tuple[Incident, ...]
    total: int
    counts: Mapping[str, int]
    size: int = PAGE_SIZE

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
        raise UsageError(f"the address has more than {MAX_PARAMETERS} parameters; leave some of them out")
    if any(len(name) + len(text) > MAX_CHARACTERS for name, text in pairs):
        raise UsageError(f"a parameter of the address is longer than {MAX_CHARACTERS} characters; shorten it")
    query = Query()
    for name, text in pairs:
        value = text.strip()
        if not value:
            continue
        if name == "status":
            query = replace(query, state=_one_of(name, value, STATES))
        elif name == "severity":
            query = replace(query, severity=_one_of(name, value, SEVERITIES))
        elif name == "label":
            label, _, label_value = value.partition("=")
            query = replace(query, labels=(*query.labels, (label.strip(), label_value.strip())))
        elif name == "page":
            query = replace(query, page=_page(value))
    return query


def list_incidents(store: Store, query: Query, size: int = PAGE_SIZE) -> Listing:
    """Return the page of `query`, ordered by state (open ones first), most severe first, last seen first. Raises StoreError."""
    states = (query.state,) if query.state else FINDINGS
    shown, counts = store.search(Search(states, query.severity, query.labels), size, (query.page - 1) * size)
    return Listing(query, tuple(shown), sum(counts[state] for state in states), counts, size)


def state(incident: Incident) -> str:
    """Return the incident's status; `pending` while it waits to be confirmed."""
    return "pending" if incident.pending else incident.status


def label_text(name: str, value: str) -> str:
    """Return a label as a query writes it: `broker=1`, or `broker` for any value."""
    return f"{name}={value}" if value else name


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError(f"there is no {name} `{value}`; known: {', '.join(choices)}")
    return value


def _page(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value) > 0):
        raise UsageError(f"`{value}` is not a page number; give one from 1 to 999999")
    return int(value)
