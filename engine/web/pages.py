"""The pages as HTML: templates over the model.

Every expression of a template passes through `visible` and is then escaped, so no template can forget it; text of several lines
goes through `lines`, which does the same line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from engine.errors import DataLoss
from engine.model.answers import iso
from engine.model.incidents import Blind, Incident
from engine.model.links import Link
from engine.model.notifications import Standing
from engine.model.phrases import lasting, moment, named
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.web.listing import STATES, Listing, Query, label_text, state
from engine.web.timeline import timeline

LINES_SHOWN = 12  # of an event; the rest, mostly a stack trace, is folded away


def list_page(listing: Listing, blinds: Sequence[Blind], losses: Sequence[DataLoss], now: datetime) -> str:
    """Return the page of all incidents."""
    return _page("incidents.html", listing=listing, query=listing.query, blinds=blinds, losses=losses, now=now)


def incident_page(
    revisions: Sequence[Incident], standings: Sequence[Standing], now: datetime, links: Sequence[Link] = ()
) -> str:
    """Return the page of one incident: the last of `revisions` (at least one), and what came before."""
    logs = [link for link in links if link.kind == "kibana"]
    return _page("incident.html", incident=revisions[-1], changes=timeline(revisions), standings=standings, now=now, logs=logs)


def problem_page(title: str, sentence: str) -> str:
    """Return the page that says why there is no other."""
    return _page("problem.html", title=title, sentence=sentence)


def lines(text: str) -> Markup:
    """Return text of several lines as HTML: each made visible and escaped, line ends kept."""
    return Markup("\n").join(escape(visible(line)) for line in text.split("\n"))


def ago(at: datetime, now: datetime) -> str:
    """Return how long `at` is ago, or until it comes when a clock is ahead."""
    span = now - at
    return f"{lasting(span)} ago" if span >= timedelta() else f"in {lasting(-span)}"


def duration(incident: Incident) -> str:
    """Return how long the incident lasts or lasted, by its lines; empty for a moment and without times."""
    end = incident.resolved_at or incident.last_seen
    if end is None or incident.first_seen is None or end - incident.first_seen < timedelta(seconds=1):
        return ""
    return lasting(end - incident.first_seen)


def folded(text: str) -> tuple[str, str, int]:
    """Return the first lines of an event, the others, and how many these are."""
    split = text.rstrip("\n").split("\n")
    return "\n".join(split[:LINES_SHOWN]), "\n".join(split[LINES_SHOWN:]), max(0, len(split) - LINES_SHOWN)


def words(name: str) -> str:
    """Return a name of the model as words: `retry_later` is `retry later`."""
    return name.replace("_", " ")


def linkable(address: str) -> bool:
    """Say whether a reference may be followed: only the web's own schemes."""
    return address.startswith(("https://", "http://"))


def only_label(name: str, value: str) -> str:
    """Return the address of the list of incidents with this label."""
    return Query(labels=((name, value),)).address()


def _shown(value: Any) -> Any:
    """Return what a template puts out for a value: HTML as it is, everything else as visible text."""
    return value if isinstance(value, Markup) else visible(str(value))


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("engine.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"lines": lines, "moment": moment, "iso": iso, "named": named, "folded": folded}
    made.globals |= {"ago": ago, "duration": duration, "linkable": linkable, "state": state, "words": words}
    made.globals |= {"only_label": only_label, "label_text": label_text, "states": STATES, "severities": SEVERITIES[::-1]}
    return made


def _page(template: str, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(values)


_TEMPLATES = _environment()
