"""The application: the routes, what each reads from the store, and what people may do.

/                     the list; q, status, severity, component, cluster, rule, receiver and label (more than once)
                      narrow it, page turns it
/incidents/<id>       one incident; POST /incidents/<id>/acts does something about it
/incidents/<id>/lines/<n>  what stands around a line of its evidence
/incidents/<id>.json  the same as in `tocsin scan --format json`, with links, deliveries and history
/audit                what works now and may break, by the last picture of each cluster that is asked
/rules                how people fared with each rule
/login, /logout       where users sign in
/healthz              200 when the store can be read, else 503; open to everybody
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from engine.errors import ReaderBusy, RuntimeMissing, SourceError, StoreError, StoreLost, UsageError
from engine.model.incidents import DAWN
from engine.model.links import NO_LINKS, LinkTargets
from engine.model.words import marked, worded
from engine.ports import EvidenceReader
from engine.risks.picturing import AuditTerms
from engine.store import Store
from engine.web.access import READ_ONLY, Entrance, SignedIn
from engine.web.answers import history_value
from engine.web.audit import PageAudit, no_audit
from engine.web.changing import Changes, SigningIn, desk_of, to_login
from engine.web.guard import Guard
from engine.web.history import history_of
from engine.web.languages import ENGLISH_ONLY, Languages, phrase, words_for
from engine.web.listing import list_incidents, parse_query
from engine.web.pages import (
    Desk,
    RisksView,
    around_page,
    incident_page,
    list_page,
    problem_page,
    risks_page,
    rules_page,
)
from engine.web.templating import STATIC

_NOTHING, _NO_WAY, _DEFECT = marked(
    "There is nothing at this address.",
    "This address cannot be used that way.",
    "This is a defect of tocsin itself; the details are where `tocsin serve` writes its messages.",
)
_SENTENCES = {404: _NOTHING, 405: _NO_WAY}


class JsonText(Response):
    """A JSON value for people and programs: indented, in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes; characters that UTF-8 cannot encode become JSON escapes."""
        return f"{json.dumps(content, ensure_ascii=False, indent=2)}\n".encode("utf-8", "backslashreplace")


class PageInputs(Struct, frozen=True):
    """What pages need beside the store.

    Attributes:
        reader: reads what stands around a line of evidence; None for nothing.
        terms: what clusters are judged by for the page of risks.
        languages: those of the pages.
    """

    reader: EvidenceReader | None = None
    terms: AuditTerms = AuditTerms()
    languages: Languages = ENGLISH_ONLY


def application(
    store: Store,
    hosts: frozenset[str],
    clock: Callable[[], datetime],
    links: LinkTargets = NO_LINKS,
    access: Entrance = READ_ONLY,
    audit: PageAudit = no_audit,
    origins: frozenset[str] = frozenset(),
    inputs: PageInputs = PageInputs(),  # noqa: B008 - frozen
) -> ASGIApp:
    """Return the pages over `store` as an ASGI application.

    Args:
        hosts: the values of the Host header that are answered, in lower case.
        clock: returns the current time in UTC, by which the pages show how long ago something was.
        links: the links of an incident to other systems.
        access: who may see the pages, and who may change something.
        audit: takes sign-ins, refusals and acts.
        origins: scheme and host of the pages' own addresses, in lower case; changes come from pages of these only.
        inputs: what pages need beside the store.
    """
    pages = Views(store, clock, links, access, inputs)
    changes = Changes(store, clock, access, audit, origins, pages.incident)
    routes = [
        Route("/", pages.checked(pages.incidents)),
        Route("/incidents/{id}.json", pages.checked(pages.incident_json)),
        Route("/incidents/{id}", pages.checked(pages.incident)),
        Route("/incidents/{id}/lines/{number:int}", pages.checked(pages.around)),
        Route("/rules", pages.checked(pages.rules)),
        Route("/audit", pages.checked(pages.risks)),
        Route("/healthz", pages.healthz),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    if access is not READ_ONLY:
        routes.insert(0, Route("/incidents/{id}/acts", changes.act, methods=["POST"]))
    if isinstance(access, SignedIn):
        signing_in = SigningIn(access, audit, origins)
        routes += [
            Route("/login", signing_in.form, methods=["GET"]),
            Route("/login", signing_in.sign_in, methods=["POST"]),
            Route("/logout", signing_in.sign_out, methods=["POST"]),
        ]
    app = Starlette(routes=routes, exception_handlers=_HANDLERS)
    app.state.languages = inputs.languages
    return Guard(app, hosts)


class Views:
    """What can be seen."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        links: LinkTargets,
        access: Entrance,
        inputs: PageInputs = PageInputs(),  # noqa: B008 - frozen
    ) -> None:
        self._store, self._clock, self._links, self._access = store, clock, links, access
        self._reader, self._terms = inputs.reader, inputs.terms

    def incidents(self, request: Request, desk: Desk) -> Response:
        """Answer with the list."""
        store, now = self._store, self._clock()
        listing = list_incidents(store, parse_query(request.query_params.multi_items()), now)
        words, reading = words_for(request), store.input_notes()
        return HTMLResponse(list_page(listing, store.blinds(), store.losses(), now, reading=reading, desk=desk, words=words))

    def incident(self, request: Request, desk: Desk, status: int = 200) -> Response:
        """Answer with the page of an incident."""
        history = history_of(self._store, request.path_params["id"], self._links, self._clock())
        if history is None:
            raise HTTPException(404, worded("There is no incident {text}.", text=request.path_params["id"]))
        readable = (lambda _: False) if self._reader is None else self._reader.may_read
        return HTMLResponse(
            incident_page(history, self._clock(), desk=desk, readable=readable, words=words_for(request)), status
        )

    def around(self, request: Request, desk: Desk) -> Response:
        """Answer with what stands around a line of evidence of an incident."""
        id_, number = request.path_params["id"], request.path_params["number"]
        revisions = self._store.revisions(id_)
        evidence = revisions[-1].evidence if revisions else ()
        if self._reader is None or not 0 < number <= len(evidence) or not self._reader.may_read(evidence[number - 1]):
            sentence = worded("There are no lines around line {number} of the evidence of {text}.", number=number, text=id_)
            raise HTTPException(404, sentence)
        event, why = evidence[number - 1], ""
        try:
            around = self._reader.neighbours(event)
        except (SourceError, RuntimeMissing) as error:
            around, why = None, str(error)
        except ReaderBusy:
            sentence = worded("Other lines are being read from the files. Try again in a moment.")
            raise HTTPException(503, sentence, {"Retry-After": "2"}) from None
        return HTMLResponse(around_page(revisions[-1], event, around, self._clock(), why, desk, words_for(request)))

    def incident_json(self, request: Request, _desk: Desk) -> Response:
        """Answer with an incident as JSON."""
        history = history_of(self._store, request.path_params["id"], self._links, self._clock())
        return JsonText(history_value(history)) if history else JsonText({"error": "no such incident"}, 404)

    def rules(self, request: Request, desk: Desk) -> Response:
        """Answer with the stats of the rules."""
        return HTMLResponse(rules_page(self._store.rule_stats(DAWN), desk, words_for(request)))

    def risks(self, request: Request, desk: Desk) -> Response:
        """Answer with what is at risk in each cluster that is asked."""
        now = self._clock()
        views = [
            RisksView(self._terms.judged(name, pictures), pictures.last)
            for name, pictures in self._store.recent_pictures(now).items()
        ]
        return HTMLResponse(risks_page(views, now, desk, words_for(request)))

    def healthz(self, _request: Request) -> Response:
        """Answer whether the store can be read."""
        self._store.check_file()
        self._store.check_readable()
        return PlainTextResponse("ok\n")

    def checked(self, page: Callable[[Request, Desk], Response]) -> Callable[[Request], Response]:
        """Return `page`, preceded by a check of who asks, and that the store was not removed or replaced: the open file would
        go on to answer."""

        def checked_page(request: Request) -> Response:
            visitor = self._access.visitor(request)
            if visitor is None:
                is_json = request.url.path.endswith(".json")
                return JsonText({"error": "sign in first"}, 401) if is_json else to_login(request)
            self._store.check_file()
            return page(request, desk_of(self._access, visitor))

        return checked_page


def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail if error.detail != phrase(error.status_code) else ""
    return _problem(request, error.status_code, detail or _SENTENCES.get(error.status_code, ""), error.headers)


def _usage_problem(request: Request, error: Exception) -> Response:
    return _problem(request, 400, str(error))


def _store_problem(request: Request, error: Exception) -> Response:
    sentence = f"{error}; start `tocsin serve` again" if isinstance(error, StoreLost) else str(error)
    return PlainTextResponse(f"{sentence}\n", 503) if request.url.path == "/healthz" else _problem(request, 503, sentence)


def _defect_problem(request: Request, _error: Exception) -> Response:
    return _problem(request, 500, _DEFECT)


def _problem(request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(problem_page(phrase(status), sentence, words_for(request)), status, headers)


_HANDLERS: Mapping[Any, Any] = {
    HTTPException: _http_problem,
    UsageError: _usage_problem,
    StoreError: _store_problem,
    Exception: _defect_problem,
}
