"""The pages as HTML: templates over the model.

Every expression of a template passes through `visible` and is then escaped, so no template can forget it; text of several lines
goes through `lines`, which does the same line by line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from engine.errors import DataLoss
from engine.model.answers import iso
from engine.model.incidents import Incident, NotEvaluated
from engine.model.matches import Value
from engine.model.phrases import lasting, moment, named
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.store import STATES
from engine.web.addresses import SERVED, Addresses
from engine.web.history import History
from engine.web.listing import Listing, Query, label_text, state

STATIC = Path(__file__).parent / "static"
EVENTS_SHOWN = 3
LINES_SHOWN = 12  # of an event; the rest, mostly a stack trace, is folded away


def list_page(
    listing: Listing, blinds: Sequence[NotEvaluated], losses: Sequence[DataLoss], now: datetime, site: Addresses = SERVED
) -> str:
    """Return the page of all incidents."""
    said = {"listing": listing, "query": listing.query, "blinds": blinds, "losses": losses, "now": now}
    return _page("incidents.html", site, **said)


def incident_page(history: History, now: datetime, site: Addresses = SERVED) -> str:
    """Return the page of one incident."""
    logs = [link for link in history.links if link.kind == "kibana"]
    return _page("incident.html", site, incident=history.incident, history=history, logs=logs, now=now)


def problem_page(title: str, sentence: str) -> str:
    """Return the page that says why there is no other."""
    return _page("problem.html", SERVED, title=title, sentence=sentence)


def lines(text: str) -> Markup:
    """Return text of several lines as HTML: each made visible and escaped, line ends kept."""
    return Markup("\n").join(escape(visible(line)) for line in text.split("\n"))


def marked(text: str, captures: Mapping[str, Value]) -> Markup:
    """Return text as `lines` does, with what the rule captured in it marked; single characters are not."""
    values = sorted({str(value) for value in captures.values() if len(str(value)) > 1}, key=len, reverse=True)
    if not values:
        return lines(text)
    known = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)")
    parts = known.split(text)  # what stands at odd places is a captured value
    return Markup("").join(Markup("<mark>{}</mark>").format(lines(p)) if n % 2 else lines(p) for n, p in enumerate(parts))


def assigned(settings: Mapping[str, str]) -> str:
    """Return settings as the lines of a file of properties."""
    return "\n".join(f"{key}={value}" for key, value in settings.items())


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
    made.filters |= {"lines": lines, "moment": moment, "iso": iso, "named": named, "folded": folded, "marked": marked}
    made.globals |= {
        "ago": ago,
        "duration": duration,
        "linkable": linkable,
        "state": state,
        "words": words,
        "asset": _asset,
        "assigned": assigned,
        "events_shown": EVENTS_SHOWN,
    }
    made.globals |= {"only_label": only_label, "label_text": label_text, "states": STATES, "severities": SEVERITIES[::-1]}
    return made


def _page(template: str, site: Addresses, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(values, site=site)


def _asset(name: str) -> Markup:
    """Return a file of static/ to stand in a page that has no server."""
    return Markup((STATIC / name).read_text(encoding="utf-8"))  # noqa: S704 - our own


_TEMPLATES = _environment()
