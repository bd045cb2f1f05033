"""Render the pages as HTML from templates over the model.

The value of every template expression passes through `visible` and is then escaped, so that no template can forget it; text of
several lines goes through `lines`, which does the same line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from engine.acting import sentence
from engine.errors import DataLoss
from engine.model.acts import SILENCE_SPANS, USUAL_SPAN, RuleStats
from engine.model.answers import iso
from engine.model.considered import CONSIDERED_WORDS
from engine.model.incidents import STATES, Evidence, Incident, NotEvaluated
from engine.model.links import Link
from engine.model.matches import Value
from engine.model.past import NEAR_WORDS
from engine.model.phrases import lasting, moment, named
from engine.model.pictures import ClusterPicture
from engine.model.proof import Neighbours
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.picture import NARROW, WIDE, Mark, Picture, day_strip, describe, draw, sparkline
from engine.risks.judging import ClusterAudit
from engine.risks.risk import Risk
from engine.risks.summary import headline, remarks, shown_risks, subject
from engine.web.addresses import SERVED, Addresses
from engine.web.history import History
from engine.web.listing import FACETS, Listing, Query, duration, label_text, state
from engine.web.timeline import deeds

STATIC = Path(__file__).parent / "static"
EVENTS_SHOWN = 3
LINES_SHOWN = 12  # of an event; the rest, mostly a stack trace, is folded


class Desk(Struct, frozen=True):
    """What the reader of a page may do: nothing without a name.

    Attributes:
        token: proves that a form came from this page.
        key: the key of the page's forms (see forms.act_of).
        signs_out: whether the page offers to sign out.
        notice: what became of the reader's last act, in a sentence; empty when there is nothing to say.
    """

    user: str = ""
    token: str = ""
    key: str = ""
    signs_out: bool = False
    notice: str = ""


NO_DESK = Desk()


class IncidentView(Struct, frozen=True):
    """An incident as a template shows it.

    Attributes:
        picture: its picture; None when its lines have no times.
        prefix: the beginning of all ids in it, so that several may be on one page.
        readable: the event ids of the evidence whose neighbours a server may read.
    """

    history: History
    picture: Picture | None
    prefix: str = ""
    readable: frozenset[str] = frozenset()

    @property
    def incident(self) -> Incident:
        """The last revision of the incident."""
        return self.history.incident

    @property
    def logs(self) -> Sequence[Link]:
        """The links to its logs."""
        return [link for link in self.history.links if link.kind == "kibana"]

    def moments(self) -> Sequence[tuple[str, str, Mark]]:
        """Return the marks of the picture in order of time, each with its id on the page and the name of its lane."""
        marks = self.picture.in_order() if self.picture is not None else []
        return [(f"{self.prefix}moment-{n}", lane, mark) for n, (lane, mark) in enumerate(marks, 1)]

    def line(self, event_id: str) -> str:
        """Return the id of a line of evidence on the page; empty when the incident has no such line."""
        ids = [event.event_id for event in self.incident.evidence]
        return f"{self.prefix}line-{ids.index(event_id) + 1}" if event_id in ids else ""

    def drawings(self) -> Markup:
        """Return the picture twice, for wide and for narrow windows; the style sheet shows one of them."""
        if self.picture is None:
            return Markup("")
        moments = {id(mark): name for name, _, mark in self.moments()}

        def target(mark: Mark) -> str:
            return f"#{self.line(mark.event_id) or moments[id(mark)]}"

        drawn = (draw(self.picture, width, target, f"{self.prefix}w{width}") for width in (WIDE, NARROW))
        wide, narrow = (Markup(svg) for svg in drawn)  # noqa: S704 - it escapes every text
        return Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(wide, narrow)


class RisksView(Struct, frozen=True):
    """What is at risk in a cluster as a template shows it, and the picture that it was judged by."""

    audit: ClusterAudit
    picture: ClusterPicture

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return headline(self.audit)

    @property
    def subject(self) -> str:
        """Which cluster it is, and how large."""
        return subject(self.audit)

    @property
    def risks(self) -> Sequence[Risk]:
        """The risks that are shown."""
        return list(shown_risks(self.audit))

    @property
    def remarks(self) -> Sequence[str]:
        """What is left out, and what its commands need."""
        return list(remarks(self.audit))


def view_of(history: History, prefix: str = "") -> IncidentView:
    """Return the view of an incident's history."""
    return IncidentView(history, describe(history.incident, deeds(history.changes)), prefix)


def list_page(
    listing: Listing,
    blinds: Sequence[NotEvaluated],
    losses: Sequence[DataLoss],
    now: datetime,
    site: Addresses = SERVED,
    reading: Sequence[str] = (),
    desk: Desk = NO_DESK,
) -> str:
    """Return the page with the list of incidents. `reading`: how the sources are read, a sentence each."""
    values = {"listing": listing, "query": listing.query, "blinds": blinds, "losses": losses, "reading": reading, "now": now}
    values["day"] = Markup(day_strip(listing.going_on, now)) if listing.going_on else ""  # noqa: S704 - it escapes every text
    return _page("incidents.html", site, desk=desk, **values)


def incident_page(
    history: History,
    now: datetime,
    site: Addresses = SERVED,
    desk: Desk = NO_DESK,
    readable: Callable[[Evidence], bool] = lambda _: False,
) -> str:
    """Return the page of one incident. `readable`: whether a server may read what stands around a line of evidence."""
    lines = frozenset(event.event_id for event in history.incident.evidence if readable(event))
    view = replace(view_of(history), readable=lines)
    return _page("incident.html", site, view=view, incident=history.incident, now=now, desk=desk)


def around_page(incident: Incident, evidence: Evidence, around: Neighbours | None, now: datetime, desk: Desk = NO_DESK) -> str:
    """Return the page of what stands around a line of evidence; `around` is None when it could not be read."""
    return _page("around.html", SERVED, incident=incident, event=evidence, around=around, now=now, desk=desk)


def rules_page(stats: Sequence[RuleStats], desk: Desk = NO_DESK) -> str:
    """Return the page with how people fared with each rule."""
    return _page("rules.html", SERVED, desk=desk, stats=stats)


def risks_page(views: Sequence[RisksView], now: datetime, desk: Desk = NO_DESK) -> str:
    """Return the page with what is at risk in each cluster that is asked."""
    return _page("audit.html", SERVED, desk=desk, views=views, now=now)


def login_page(onward: str, name: str = "", problem: str = "") -> str:
    """Return the page where users sign in; they are sent on to the address `onward`."""
    return _page("login.html", SERVED, onward=onward, name=name, problem=problem)


def report_page(histories: Iterable[History], headline: str, rest: Sequence[tuple[str, Sequence[str]]], now: datetime) -> str:
    """Return one page with all incidents, complete in itself: no script, style or image from elsewhere.

    Args:
        headline: what was found, in one sentence.
        rest: lists of what is no incident, each with its heading; empty ones are left out.
    """
    views = [view_of(history, f"i{n}-") for n, history in enumerate(histories, 1)]
    site = Addresses(files=True, single=True)
    return _page("report.html", site, views=views, headline=headline, rest=[part for part in rest if part[1]], now=now)


def problem_page(title: str, sentence: str) -> str:
    """Return the page of a request that failed, with the reason."""
    return _page("problem.html", SERVED, title=title, sentence=sentence)


def lines(text: str) -> Markup:
    """Return text of several lines as HTML: each line made visible and escaped, line ends kept."""
    return Markup("\n").join(escape(visible(line)) for line in text.split("\n"))


def marked(text: str, captures: Mapping[str, Value]) -> Markup:
    """Return text as `lines` does, with the captured values in it marked, except single characters."""
    values = sorted({str(value) for value in captures.values() if len(str(value)) > 1}, key=len, reverse=True)
    if not values:
        return lines(text)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)")
    parts = pattern.split(text)  # those at odd positions are captured values
    return Markup("").join(Markup("<mark>{}</mark>").format(lines(p)) if n % 2 else lines(p) for n, p in enumerate(parts))


def assigned(settings: Mapping[str, str]) -> str:
    """Return settings as the lines of a properties file."""
    return "\n".join(f"{key}={value}" for key, value in settings.items())


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago `at` is, or how far in the future when a clock is ahead."""
    span = now - at
    return f"{lasting(span)} ago" if span >= timedelta() else f"in {lasting(-span)}"


def folded(text: str) -> tuple[str, str, int]:
    """Return the first LINES_SHOWN lines of an event, the other lines, and the number of these."""
    split = text.rstrip("\n").split("\n")
    return "\n".join(split[:LINES_SHOWN]), "\n".join(split[LINES_SHOWN:]), max(0, len(split) - LINES_SHOWN)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text; all of it when it has one."""
    head, end, _ = text.partition(". ")
    return head + end.strip()


def spark(incident: Incident) -> Markup:
    """Return the occurrences of an incident as a small drawing; empty without times."""
    return Markup(sparkline(incident))  # noqa: S704 - it escapes every text


def words(name: str) -> str:
    """Return a name of the model as words: `retry_later` becomes `retry later`."""
    return name.replace("_", " ")


def linkable(address: str) -> bool:
    """Return whether a reference becomes a link: only http and https addresses do."""
    return address.startswith(("https://", "http://"))


def only_label(name: str, value: str) -> str:
    """Return the address of the list of the incidents with a label."""
    return Query(labels=((name, value),)).address()


def only_rule(rule: str) -> str:
    """Return the address of the list of the incidents of a rule."""
    return Query(rule=rule).address()


def span(seconds: float | None) -> str:
    """Return a duration; empty for None."""
    return "" if seconds is None else lasting(timedelta(seconds=seconds))


def _shown(value: Any) -> Any:
    """Return the output of a template expression: HTML unchanged, every other value as visible text."""
    return value if isinstance(value, Markup) else visible(str(value))


def _environment() -> Environment:
    templates = Environment(
        loader=PackageLoader("engine.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"lines": lines, "moment": moment, "iso": iso, "named": named, "folded": folded, "marked": marked}
    templates.globals |= {
        "ago": ago,
        "duration": duration,
        "linkable": linkable,
        "state": state,
        "words": words,
        "asset": _asset,
        "assigned": assigned,
        "events_shown": EVENTS_SHOWN,
        "first_sentence": first_sentence,
        "spark": spark,
        "facets": FACETS,
    }
    templates.globals |= {
        "only_label": only_label,
        "only_rule": only_rule,
        "span": span,
        "label_text": label_text,
        "states": STATES,
        "severities": SEVERITIES[::-1],
        "spans": SILENCE_SPANS,
        "usual_span": USUAL_SPAN,
        "act_sentence": sentence,
        "near_words": NEAR_WORDS,
        "considered_words": CONSIDERED_WORDS,
    }
    return templates


def _page(template: str, site: Addresses, desk: Desk = NO_DESK, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(values, site=site, desk=desk)


def _asset(name: str) -> Markup:
    """Return the content of a file of static/, to be embedded in a page that has no server."""
    return Markup((STATIC / name).read_text(encoding="utf-8"))  # noqa: S704 - our own


_TEMPLATES = _environment()
