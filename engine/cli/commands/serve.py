"""Show the incidents of a store as pages in a browser, and take what people do about them."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.entrance import entrance
from engine.cli.own_log import LogFormat, LogFormatOption, LogLevel, saying
from engine.cli.serving import pages_of
from engine.cli.signals import handle_signals
from engine.config import Settings, listen_address, load
from engine.errors import StoreAway, UsageError
from engine.store import Store
from engine.store.outage import until_back
from engine.web.server import listen_on, serve

app = typer.Typer()
_say, _warn = saying("serve"), saying("serve", LogLevel.WARNING)

HELP = """\
Serve the incidents that `tocsin run` keeps as pages: a list, and for each its cause, fix, proof and history. With web.auth
people sign in, or are named by a proxy, and act on incidents; without it the pages change nothing and are served to this
machine only. They can be open while the job runs, and before it ever ran. Where `web.listen` is set, `tocsin run` serves them.

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
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Serve the pages of `config`'s store; the help text is HELP."""
    settings = load(config)
    host, port = _host_and_port(listen) if listen else (settings.web.host, settings.web.port)
    with entrance(settings.web) as (access, audit):
        listener = listen_on(host, port, settings.web.public_url, settings.web.auth is not None)
        store = _opened(settings)
        if store is None:
            listener.socket.close()
            return
        try:
            app = pages_of(store, settings, listener, access, audit, _say)
            print(f"Incidents of {settings.store} at {settings.web.public_url or listener.address} (Ctrl-C ends)", flush=True)
            serve(app, listener)
        finally:
            store.close()


def _opened(settings: Settings) -> Store | None:
    """Open the store, and wait for one that is away; return None when a signal ends the wait."""
    with handle_signals(_say, "nothing is served yet") as signals:
        try:
            return until_back(lambda: Store.open(settings.store), signals.stop.wait, _warn)
        except StoreAway:
            if signals.stop.is_set():
                return None
            raise


def _host_and_port(listen: str) -> tuple[str, int]:
    try:
        return listen_address(listen)
    except ValueError:
        raise UsageError(f"--listen takes HOST:PORT such as 127.0.0.1:8320, not: {listen}") from None
