"""List the dead letters of a run: the input that a stage failed on, its position, and the error."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import FOUND, NOTHING_FOUND
from engine.cli.inputs import checks
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.codec import plain
from engine.config import load
from engine.model.visible import visible
from engine.store import Store

app = typer.Typer()

HELP = """\
List what could not be judged, newest first: the stage that failed, the error, the source and the place in it, and the text
without what is secret. The newest 1,000 are kept in the incident store.

--text prints the texts alone, so that another version or other rules can be tried on them.

\b
Examples:
  tocsin quarantine -c tocsin.yml
  tocsin quarantine -c tocsin.yml --text | tocsin scan -

\b
Exit codes: 0 nothing in quarantine, 1 something is, 2 usage or bad configuration,
3 failure.
"""


@app.command(help=HELP)
def quarantine(
    config: ConfigOption = DEFAULT_CONFIG,
    text: Annotated[bool, typer.Option("--text", help="Print the texts alone.")] = False,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """List the dead letters in the store of `config`; the help text is HELP."""
    store = Store.open(load(config, checks()).store)
    try:
        letters = store.quarantined()
    finally:
        store.close()
    if format is OutputFormat.JSON:
        print_json({"quarantined": plain(letters)})
    else:
        for letter in letters:
            heading = [] if text else [visible(letter.sentence)]
            print(
                "\n".join([*heading, *(visible(line) if text else f"  {visible(line)}" for line in letter.text.splitlines())])
            )
    raise typer.Exit(FOUND if letters else NOTHING_FOUND)
