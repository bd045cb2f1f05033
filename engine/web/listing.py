"""Which incidents the list shows, and in which order: what the reader asked for, as a search of the store."""

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

FINDINGS = ("open", "acknowledged", "resolved")  # shown when no state is asked for
PAGE_SIZE = 100
MOST_PARAMETERS = 30
MOST_CHARACTERS = 1000  # of a parameter
EVERYTHING = 2**31  # as a page size: all on one page


class Query(Struct, frozen=True):
    """What the reader asked for. Empty `state`: the findings; a label without a value: incidents that have it at all."""

    state: str = ""
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    page: int = 1

    def address(self, state: str | None = None, page: int = 1) -> str:
        """Return the address of the list for this query, with another state if one is given ("" for none)."""
        parts = [("status", self.state if state is None else state), ("severity", self.severity)]
        parts += [("label", label_text(name, value)) for name, value in self.labels]
        parts += [("page", str(page) if page > 1 else "")]
        said = [(name, value) for name, value in parts if value]
        return f"/?{urlencode(said)}" if said else "/"


class Listing(Struct, frozen=True):
    """One page of the list: `found` incidents fit the query, `counts` says how many there are by state without its state."""

    query: Query
    shown: tuple[Incident, ...]
    found: int
    counts: Mapping[str, int]
    size: int = PAGE_SIZE

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.found // self.size))


def asked(parameters: Iterable[tuple[str, str]]) -> Query:
    """Return the query of an address's parameters; blank ones ask for nothing.

    Raises UsageError when one of them asks for something that does not exist.
    """
    given = list(islice(parameters, MOST_PARAMETERS + 1))
    if len(given) > MOST_PARAMETERS:
        raise UsageError(f"the address asks for more than {MOST_PARAMETERS} things; leave some of them out")
    if any(len(name) + len(text) > MOST_CHARACTERS for name, text in given):
        raise UsageError(f"one of the things that the address asks for is longer than {MOST_CHARACTERS} characters")
    query = Query()
    for name, text in given:
        value = text.strip()
        if not value:
            continue
        if name == "status":
            query = replace(query, state=_one_of(name, value, STATES))
        elif name == "severity":
            query = replace(query, severity=_one_of(name, value, SEVERITIES))
        elif name == "label":
            label, _, wanted = value.partition("=")
            query = replace(query, labels=(*query.labels, (label.strip(), wanted.strip())))
        elif name == "page":
            query = replace(query, page=_page(value))
    return query


def listed(store: Store, query: Query, size: int = PAGE_SIZE) -> Listing:
    """Return the page that `query` asks for: what is open first, then most severe, then seen last. Raises StoreError."""
    states = (query.state,) if query.state else FINDINGS
    shown, counts = store.found(Search(states, query.severity, query.labels), size, (query.page - 1) * size)
    return Listing(query, tuple(shown), sum(counts[state] for state in states), counts, size)


def state(incident: Incident) -> str:
    """Return the incident's status, or pending while it waits to be confirmed."""
    return "pending" if incident.pending else incident.status


def label_text(name: str, value: str) -> str:
    """Return a label as it is asked for: `broker=1`, or `broker` for any value."""
    return f"{name}={value}" if value else name


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise UsageError(f"there is no {name} `{value}`; known: {', '.join(known)}")
    return value


def _page(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value) > 0):
        raise UsageError(f"`{value}` is not the number of a page")
    return int(value)
