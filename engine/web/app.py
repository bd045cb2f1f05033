"""The application: the routes, and what each reads from the store. No route changes anything.

/                     the list; q, status, severity, component, cluster, rule, receiver and label (more than once)
                      narrow it, page turns it
/incidents/<id>       one incident
/incidents/<id>.json  the same as in `tocsin scan --format json`, with links, deliveries and history
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
from engine.web.listing import list_incidents, parse_query
from engine.web.pages import STATIC, incident_page, list_page, problem_page

_SENTENCES = {404: "There is nothing at this address.", 405: "These pages can be read, and nothing else."}


class JsonText(Response):
    """A JSON value for people and programs: indented, in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes; characters that UTF-8 cannot encode become JSON escapes."""
        return f"{json.dumps(content, ensure_ascii=False, indent=2)}\n".encode("utf-8", "backslashreplace")


def application(store: Store, hosts: frozenset[str], clock: Callable[[], datetime], links: LinkTargets = NO_LINKS) -> ASGIApp:
    """Return the pages over `store` as an ASGI application.

    Args:
        hosts: the values of the Host header that are answered, in lower case.
        clock: returns the current time in UTC, by which the pages show how long ago something was.
        links: the links of an incident to other systems.
    """

    def incidents(request: Request) -> Response:
        listing = list_incidents(store, parse_query(request.query_params.multi_items()), clock())
        return HTMLResponse(list_page(listing, store.blinds(), store.losses(), clock(), reading=store.input_notes()))

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

    def checked(page: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Return `page`, preceded by a check that the store was not removed or replaced: the open file would go on to
        answer."""

        def checked_page(request: Request) -> Response:
            store.check_file()
            return page(request)

        return checked_page

    routes = [
        Route("/", checked(incidents)),
        Route("/incidents/{id}.json", checked(incident_json)),
        Route("/incidents/{id}", checked(incident)),
        Route("/healthz", checked(healthz)),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, exception_handlers=_HANDLERS), hosts)


def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    return _problem(error.status_code, detail or _SENTENCES.get(error.status_code, ""), error.headers)


def _usage_problem(_request: Request, error: Exception) -> Response:
    return _problem(400, str(error))


def _store_problem(request: Request, error: Exception) -> Response:
    sentence = f"{error}; start `tocsin serve` again" if isinstance(error, StoreLost) else str(error)
    return PlainTextResponse(f"{sentence}\n", 503) if request.url.path == "/healthz" else _problem(503, sentence)


def _defect_problem(_request: Request, _error: Exception) -> Response:
    return _problem(500, "This is a defect of tocsin itself; the details are where `tocsin serve` writes its messages.")


def _problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(problem_page(HTTPStatus(status).phrase, sentence), status, headers)


_HANDLERS: Mapping[Any, Any] = {
    HTTPException: _http_problem,
    UsageError: _usage_problem,
    StoreError: _store_problem,
    Exception: _defect_problem,
}
