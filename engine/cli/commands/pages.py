"""Write the pages of a store into a folder, to be read without a server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.config import load
from engine.errors import UsageError
from engine.language import words_of
from engine.model.words import ENGLISH
from engine.store import Store
from engine.web.export import write_pages

app = typer.Typer()

HELP = """\
Write the incidents that `tocsin run` keeps as pages into a folder: a list, and a page and a JSON file for each. They need no
server and no network, and can be sent to somebody. Pages of an earlier time in that folder are replaced. They are in the
language of `web.language`.

\b
Examples:
  tocsin pages -c tocsin.yml --out incidents-of-today

\b
Exit codes: 0 written, 2 usage or bad configuration, 3 failure.
"""


@app.command("pages", help=HELP)
def pages(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder; made when it is not there.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Write the pages of `config`'s store into `out`; the help text is HELP."""
    settings = load(config)
    store = Store.open(settings.store)
    try:
        written = write_pages(
            store, out, datetime.now(UTC), settings.links, words_of(settings.web.language or ENGLISH.language)
        )
    except OSError as error:
        raise UsageError(f"{out}: the pages cannot be written there ({error.strerror})") from None
    finally:
        store.close()
    print(f"{written} {'incident' if written == 1 else 'incidents'}: {(out.resolve() / 'index.html').as_uri()}")
    print(f"Served while they change: tocsin serve -c {config}, then http://{settings.web.host}:{settings.web.port}/")
