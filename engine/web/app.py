"""The application: addresses, and what is read from the store for each. It changes nothing and has no address that would.

/                     the list; status, severity and label (more than once) narrow it, page turns it
/incidents/<id>       one incident
/incidents/<id>.json  the same as in `tocsin scan --format json`, and who was told
/healthz              200 when the store can be read, else 503
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from engine.errors import StoreError, StoreLost, UsageError
from engine.model.links import NO_LINKS, LinkTargets
from engine.store import Store
from engine.web.answers import history_value
from engine.web.guard import Guard
from engine.web.history import history_of
from engine.web.listing import asked, listed
from engine.web.pages import STATIC, incident_page, list_page, problem_page

_SENTENCES = {404: "There is nothing at this address.", 405: "These pages can be read, and nothing else."}


class JsonText(Response):
    """A JSON value for people and programs: indented, in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes; what UTF-8 cannot hold becomes an escape that JSON knows."""
        return f"{json.dumps(content, ensure_ascii=False, indent=2)}\n".encode("utf-8", "backslashreplace")


def application(store: Store, hosts: frozenset[str], clock: Callable[[], datetime], links: LinkTargets = NO_LINKS) -> ASGIApp:
    """Return the pages over `store` as an ASGI application that answers to `hosts` (values of the Host header, lower-case).

    `clock` gives the present in UTC, to say how long ago something was; `links` lead on from an incident.
    """

    def incidents(request: Request) -> Response:
        listing = listed(store, asked(request.query_params.multi_items()))
        return HTMLResponse(list_page(listing, store.blinds(), store.losses(), clock()))

    def incident(request: Request) -> Response:
        history = history_of(store, request.path_params["id"], links)
        if history is None:
            raise HTTPException(404, f"There is no incident {request.path_params['id']}.")
        return HTMLResponse(incident_page(history, clock()))

    def incident_json(request: Request) -> Response:
        history = history_of(store, request.path_params["id"], links)
        return JsonText(history_value(history)) if history else JsonText({"error": "no such incident"}, 404)

    def healthz(_request: Request) -> Response:
        store.batches()
        return PlainTextResponse("ok\n")

    def read(page: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Return `page` without what a store that is gone, or that another one has replaced, would go on to say."""

        def answer(request: Request) -> Response:
            store.check_file()
            return page(request)

        return answer

    routes = [
        Route("/", read(incidents)),
        Route("/incidents/{id}.json", read(incident_json)),
        Route("/incidents/{id}", read(incident)),
        Route("/healthz", read(healthz)),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, exception_handlers=_HANDLERS), hosts)


def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    return _problem(error.status_code, said or _SENTENCES.get(error.status_code, ""), error.headers)


def _misunderstood(_request: Request, error: Exception) -> Response:
    return _problem(400, str(error))


def _unreadable(request: Request, error: Exception) -> Response:
    said = f"{error}; start `tocsin serve` again" if isinstance(error, StoreLost) else str(error)
    return PlainTextResponse(f"{said}\n", 503) if request.url.path == "/healthz" else _problem(503, said)


def _defect(_request: Request, _error: Exception) -> Response:
    return _problem(500, "This is a defect of tocsin itself; what it is stands where `tocsin serve` writes its messages.")


def _problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(problem_page(HTTPStatus(status).phrase, sentence), status, headers)


_HANDLERS: Mapping[Any, Any] = {
    HTTPException: _refused,
    UsageError: _misunderstood,
    StoreError: _unreadable,
    Exception: _defect,
}
