"""What people change on the pages: acts on incidents, and signing in and out.

A change needs a user, a form of this session (a token in it) and a page of ours (the origin that the browser states).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from math import ceil
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from engine.errors import UnknownIncident
from engine.model.acts import MOST_NAME, ActOutcome
from engine.model.phrases import lasting
from engine.model.words import worded
from engine.store import Store
from engine.web.access import Entrance, SignedIn, Visitor, client_address, is_same_origin
from engine.web.addresses import SERVED
from engine.web.audit import PageAudit
from engine.web.forms import act_of, fields_of, local_address, new_key
from engine.web.languages import words_for
from engine.web.pages import NO_DESK, Desk, login_page

_TOO_OLD = worded("This form is too old, or came from elsewhere. Load the page again and repeat it.")
_FOREIGN = worded("This form came from a page of another site, and was not accepted.")
_NO_MATCH = worded("This name and this password do not belong together.")

IncidentPage = Callable[[Request, Desk, int], Response]


class Changes:
    """What people do on the pages. `page` answers with the page of an incident."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        access: Entrance,
        audit: PageAudit,
        origins: frozenset[str],
        page: IncidentPage,
    ) -> None:
        self._store, self._clock, self._access, self._audit = store, clock, access, audit
        self._origins, self._page = origins, page

    async def act(self, request: Request) -> Response:
        """Record an act and go back to the page of its incident; without effect, answer with the page, which says why."""
        fields = await fields_of(request)
        return await run_in_threadpool(self._record, request, fields)

    def _record(self, request: Request, fields: Mapping[str, str]) -> Response:
        visitor = self._access.visitor(request)
        check_origin(request, self._origins, self._audit)
        if visitor is None:
            return to_login(request)
        if not self._access.is_token(fields.get("token", ""), visitor):
            self._audit("refused", visitor.user, client_address(request), why="the form has no token of this session")
            raise HTTPException(403, _TOO_OLD)
        self._store.check_file()
        act = act_of(fields, request.path_params["id"], visitor.user, self._clock())
        try:
            recorded = self._store.acts().record(act)
        except UnknownIncident as error:
            raise HTTPException(404, str(error)) from None
        decision, id = recorded.decision, recorded.incident.id
        self._audit("act", visitor.user, client_address(request), kind=act.kind, incident=id, outcome=decision.outcome)
        if decision.outcome is ActOutcome.DONE:
            return RedirectResponse(SERVED.incident(id), 303)
        request.path_params["id"] = id
        status = 409 if decision.outcome is ActOutcome.REFUSED else 200
        words = words_for(request)
        why = words.sentence(decision.sentence)
        notice = words("Not done: {why}.", why=why) if status == 409 else words("Nothing changed: {why}.", why=why)
        return self._page(request, desk_of(self._access, visitor, notice), status)


class SigningIn:
    """Where users sign in and out."""

    def __init__(self, access: SignedIn, audit: PageAudit, origins: frozenset[str]) -> None:
        self._access, self._audit, self._origins = access, audit, origins

    def form(self, request: Request) -> Response:
        """Answer with the form, or send a user who is signed in on."""
        onward = local_address(request.query_params.get("next", "/"))
        if self._access.visitor(request) is not None:
            return RedirectResponse(onward, 303)
        return HTMLResponse(login_page(onward, words=words_for(request)))

    async def sign_in(self, request: Request) -> Response:
        """Begin a session if the password is right."""
        fields = await fields_of(request)
        return await run_in_threadpool(self._sign_in, request, fields)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        fields = await fields_of(request)
        check_origin(request, self._origins, self._audit)
        visitor, response = self._access.visitor(request), RedirectResponse("/login", 303)
        if visitor is None or visitor.session is None:
            return response
        if not self._access.is_token(fields.get("token", ""), visitor):
            raise HTTPException(403, _TOO_OLD)
        self._access.end(response, visitor.session)
        self._audit("signed out", visitor.user, client_address(request))
        return response

    def _sign_in(self, request: Request, fields: Mapping[str, str]) -> Response:
        check_origin(request, self._origins, self._audit)
        name, address = fields.get("name", "").strip()[:MOST_NAME], client_address(request)
        onward = local_address(fields.get("next", "/"))
        wait_s = ceil(self._access.wait_s(name, request))
        if wait_s:
            self._audit("sign-in refused", name, address, why="too many failures")
            wait = lasting(timedelta(seconds=wait_s))
            sentence = worded("There were too many attempts. Try again in {span}.", span=wait)
            return _refused(request, onward, name, sentence, 429, {"Retry-After": str(wait_s)})
        if not self._access.signs_in_with(name, fields.get("password", ""), request):
            self._audit("sign-in failed", name, address)
            return _refused(request, onward, name, _NO_MATCH, 403)
        response = RedirectResponse(onward, 303)
        self._access.begin(response, name)
        self._audit("signed in", name, address)
        return response


def _refused(
    request: Request, onward: str, name: str, sentence: str, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with the form again, and why nobody was signed in."""
    words = words_for(request)
    return HTMLResponse(login_page(onward, name, words.sentence(sentence), words), status, headers)


def check_origin(request: Request, origins: frozenset[str], audit: PageAudit) -> None:
    """Raise HTTPException when a request that changes something does not come from a page of ours."""
    if not is_same_origin(request.headers, origins):
        audit("refused", "", client_address(request), why="another origin", origin=request.headers.get("origin", "none"))
        raise HTTPException(403, _FOREIGN)


def desk_of(access: Entrance, visitor: Visitor, notice: str = "") -> Desk:
    """Return what a visitor may do on a page, with a sentence about what was tried."""
    return Desk(visitor.user, access.token(visitor), new_key(), access.signs_in, notice) if visitor.user else NO_DESK


def to_login(request: Request) -> Response:
    """Send a user to the page where users sign in, and from there on to what was asked for."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    onward = here if request.method == "GET" else here.removesuffix("/acts")
    return RedirectResponse(f"/login?{urlencode({'next': onward})}", 303)
