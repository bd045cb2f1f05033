"""The pages of a store: served by a process of their own, or on a thread beside a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from starlette.types import ASGIApp

from engine.cli.entrance import entrance
from engine.cli.evidence_reading import InputReader
from engine.cli.surveying import terms_of
from engine.config import Settings
from engine.errors import ListenError, UsageError
from engine.ports import Say
from engine.store import Store
from engine.web.access import Entrance
from engine.web.app import PageInputs, application
from engine.web.audit import PageAudit
from engine.web.languages import Languages
from engine.web.server import Listener, listen_on, origins, serving


def pages_of(store: Store, settings: Settings, listener: Listener, access: Entrance, audit: PageAudit, say: Say) -> ASGIApp:
    """Return the pages of `store` at `listener`; report passwords that would travel unencrypted."""
    public_url = settings.web.public_url
    if access.signs_in and not listener.is_local and not public_url.startswith("https://"):
        say("passwords travel unencrypted; let a proxy with TLS stand before the pages")
    languages = Languages(settings.web.language, settings.plan_languages)
    names, own = listener.names(public_url), origins(listener, public_url)
    inputs = PageInputs(InputReader(settings), terms_of(settings), languages)
    return application(store, names, lambda: datetime.now(UTC), settings.links, access, audit, own, inputs)


@contextmanager
def serving_pages(settings: Settings, store: Store, say: Say, warn: Say) -> Iterator[None]:
    """Serve the pages of `store` while the body runs. Where the address, users or secret cannot be used, report that and serve
    none: no run ends for want of its pages."""
    with ExitStack() as stack:
        try:
            app, listener = _pages(settings, store, warn, stack)
        except (UsageError, ListenError) as error:
            warn(f"no pages are served by this process: {error}")
            yield
            return
        with serving(app, listener, "pages"):
            say(f"pages are at {settings.web.public_url or listener.address}")
            yield


def _pages(settings: Settings, store: Store, say: Say, stack: ExitStack) -> tuple[ASGIApp, Listener]:
    """Return the pages and what they are served at; `stack` closes what they use. Raises UsageError, ListenError."""
    web = settings.web
    access, audit = stack.enter_context(entrance(web))
    listener = listen_on(web.host, web.port, web.public_url, web.auth is not None)
    return pages_of(store, settings, listener, access, audit, say), listener
