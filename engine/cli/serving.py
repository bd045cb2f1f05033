"""The pages of a store: served by a process of their own, or on a thread beside a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from starlette.types import ASGIApp

from engine.cli.entrance import entrance
from engine.cli.evidence_reading import FilesReader
from engine.config import Settings
from engine.errors import ListenError
from engine.ports import Say
from engine.store import Store
from engine.web.access import Entrance
from engine.web.app import application
from engine.web.audit import PageAudit
from engine.web.server import Listener, listen_on, origins, server_of

ENDS_WITHIN_S = 5.0


def pages_of(store: Store, settings: Settings, listener: Listener, access: Entrance, audit: PageAudit, say: Say) -> ASGIApp:
    """Return the pages of `store` at `listener`; report passwords that would travel unencrypted."""
    public_url = settings.web.public_url
    if access.signs_in and not listener.is_local and not public_url.startswith("https://"):
        say("passwords travel unencrypted; let a proxy with TLS stand before the pages")
    names, own = listener.names(public_url), origins(listener, public_url)
    return application(store, names, lambda: datetime.now(UTC), settings.links, access, audit, own, FilesReader(settings))


@contextmanager
def serving_pages(settings: Settings, store: Store, say: Say) -> Iterator[None]:
    """Serve the pages of `store` while the body runs; where another process listens there, report that and serve none.

    Raises UsageError and ListenError when the address or `web.auth` cannot be used.
    """
    web = settings.web
    with entrance(web) as (access, audit):
        try:
            listener = listen_on(web.host, web.port, web.public_url, web.auth is not None)
        except ListenError as error:
            if not error.in_use:
                raise
            say(f"no pages are served by this process: {error}")
            yield
            return
        server = server_of(pages_of(store, settings, listener, access, audit, say))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]}, name="pages", daemon=True)
        thread.start()
        say(f"pages are at {web.public_url or listener.address}")
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(ENDS_WITHIN_S)
