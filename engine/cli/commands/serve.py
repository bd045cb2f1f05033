"""Show the incidents of a store as pages in a browser, on this machine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.config import listen_address, load
from engine.errors import UsageError
from engine.store import Store
from engine.web.app import application
from engine.web.server import listen_on, serve

app = typer.Typer()

HELP = """\
Serve the incidents that `tocsin run` keeps as pages: a list, and for each its cause, fix, proof and history. The pages change
nothing, and are served to this machine only. They can be open while the job runs, and before it ever ran.

\b
Examples:
  tocsin serve -c tocsin.yml
  tocsin serve -c tocsin.yml --listen 127.0.0.1:9000

\b
Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 usage or bad configuration, 3 failure.
"""


@app.command("serve", help=HELP)
def run(
    config: ConfigOption = DEFAULT_CONFIG,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen, instead of web.listen.")] = "",
) -> None:
    """Serve the pages of `config`'s store; the help text is HELP."""
    settings = load(config)
    host, port = _host_and_port(listen) if listen else (settings.web.host, settings.web.port)
    listener = listen_on(host, port)
    store = Store.open(settings.store)
    names = listener.names(settings.web.public_url)
    print(f"Incidents of {settings.store} at {settings.web.public_url or listener.address} (Ctrl-C ends)", flush=True)
    try:
        serve(application(store, names, lambda: datetime.now(UTC), settings.links), listener)
    finally:
        store.close()


def _host_and_port(listen: str) -> tuple[str, int]:
    try:
        return listen_address(listen)
    except ValueError:
        raise UsageError(f"--listen takes HOST:PORT such as 127.0.0.1:8320, not: {listen}") from None
