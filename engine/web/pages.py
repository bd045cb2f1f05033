"""Render the pages as HTML from templates over the model, in the language of their reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import DataLoss
from engine.model.acts import RuleStats
from engine.model.incidents import Evidence, Incident, NotEvaluated
from engine.model.links import Link
from engine.model.pictures import ClusterPicture
from engine.model.proof import Neighbours
from engine.model.prose import translated
from engine.model.words import ENGLISH, Words
from engine.picture import NARROW, WIDE, Mark, Picture, day_strip, describe, draw
from engine.risks.judging import ClusterAudit
from engine.risks.risk import Risk
from engine.risks.summary import headline, remarks, shown_risks, subject
from engine.web.addresses import SERVED, Addresses
from engine.web.history import History, in_language
from engine.web.listing import Listing
from engine.web.templating import templates_in
from engine.web.timeline import deeds


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
    words: Words = ENGLISH

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

        drawn = (draw(self.picture, width, target, f"{self.prefix}w{width}", self.words) for width in (WIDE, NARROW))
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


def view_of(history: History, prefix: str = "", words: Words = ENGLISH) -> IncidentView:
    """Return the view of an incident's history in the language of `words`."""
    shown = in_language(history, words)
    return IncidentView(shown, describe(shown.incident, deeds(shown.changes), words), prefix, words=words)


def list_page(
    listing: Listing,
    blinds: Sequence[NotEvaluated],
    losses: Sequence[DataLoss],
    now: datetime,
    site: Addresses = SERVED,
    reading: Sequence[str] = (),
    desk: Desk = NO_DESK,
    words: Words = ENGLISH,
) -> str:
    """Return the page with the list of incidents. `reading`: how the sources are read, a sentence each."""
    listing = replace(listing, shown=tuple(translated(incident, words) for incident in listing.shown))
    values = {"listing": listing, "query": listing.query, "blinds": blinds, "losses": losses, "reading": reading, "now": now}
    strip = day_strip(listing.going_on, now, words) if listing.going_on else ""
    values["day"] = Markup(strip)  # noqa: S704 - it escapes every text
    return _page("incidents.html", site, words, desk=desk, **values)


def incident_page(
    history: History,
    now: datetime,
    site: Addresses = SERVED,
    desk: Desk = NO_DESK,
    readable: Callable[[Evidence], bool] = lambda _: False,
    words: Words = ENGLISH,
) -> str:
    """Return the page of one incident. `readable`: whether a server may read what stands around a line of evidence."""
    lines = frozenset(event.event_id for event in history.incident.evidence if readable(event))
    view = replace(view_of(history, words=words), readable=lines)
    return _page("incident.html", site, words, view=view, incident=view.incident, now=now, desk=desk)


def around_page(
    incident: Incident,
    evidence: Evidence,
    around: Neighbours | None,
    now: datetime,
    why: str = "",
    desk: Desk = NO_DESK,
    words: Words = ENGLISH,
) -> str:
    """Return the page of what stands around a line of evidence; `around` is None when it could not be read, `why`
    says why where that is known."""
    shown = translated(incident, words)
    return _page("around.html", SERVED, words, incident=shown, event=evidence, around=around, why=why, now=now, desk=desk)


def rules_page(stats: Sequence[RuleStats], desk: Desk = NO_DESK, words: Words = ENGLISH) -> str:
    """Return the page with how people fared with each rule."""
    return _page("rules.html", SERVED, words, desk=desk, stats=stats)


def risks_page(views: Sequence[RisksView], now: datetime, desk: Desk = NO_DESK, words: Words = ENGLISH) -> str:
    """Return the page with what is at risk in each cluster that is asked."""
    return _page("audit.html", SERVED, words, desk=desk, views=views, now=now)


def login_page(onward: str, name: str = "", problem: str = "", words: Words = ENGLISH) -> str:
    """Return the page where users sign in; they are sent on to the address `onward`."""
    return _page("login.html", SERVED, words, onward=onward, name=name, problem=problem)


def report_page(
    histories: Iterable[History],
    headline: str,
    rest: Sequence[tuple[str, Sequence[str]]],
    now: datetime,
    words: Words = ENGLISH,
) -> str:
    """Return one page with all incidents, complete in itself: no script, style or image from elsewhere.

    Args:
        headline: what was found, in one sentence.
        rest: lists of what is no incident, each with its heading; empty ones are left out.
    """
    views = [view_of(history, f"i{n}-", words) for n, history in enumerate(histories, 1)]
    site = Addresses(files=True, single=True)
    shown = [part for part in rest if part[1]]
    return _page("report.html", site, words, views=views, headline=headline, rest=shown, now=now)


def problem_page(title: str, sentence: str, words: Words = ENGLISH) -> str:
    """Return the page of a request that failed, with the reason."""
    return _page("problem.html", SERVED, words, title=words(title), problem=words.sentence(sentence))


def _page(template: str, site: Addresses, words: Words, desk: Desk = NO_DESK, **values: Any) -> str:
    return templates_in(words.language).get_template(template).render(values, site=site, desk=desk)
