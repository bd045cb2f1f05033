"""A search for incidents, as the store carries it out and the list of the pages states it."""

from __future__ import annotations

from msgspec import Struct


class Search(Struct, frozen=True):
    """A search: incidents in any of `states` (of STATES) that fit every part.

    Empty parts do not restrict the search. A label with an empty value matches any value. `words` must each occur in the title,
    the cause, the labels, the rule or the evidence, without regard to case.
    """

    states: tuple[str, ...] = ()
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    component: str = ""
    cluster: str = ""
    rule: str = ""
    receiver: str = ""
