"""The configuration: check it, and everything that it names, at once."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from engine.cli.checking.configuration import check_configuration
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.output import FormatOption, OutputFormat, print_json

HELP = """\
Check a configuration before it is used.

`check` reports everything at once: unknown keys and wrong values, matchers that match nothing, routes that are never reached,
names that nothing uses; whether rules load, sources are reached and have something to read, secrets can be read, receivers may
send to their channels, store and checkpoint can be written, and the address of the pages is free. Nothing is written or sent.

\b
Examples:
  tocsin config check -c tocsin.yml
  tocsin config check -c tocsin.yml --offline
  tocsin config check -c tocsin.yml --format json

\b
Exit codes: 0 nothing wrong, 1 warnings only, 2 something has to be changed in the
configuration, 3 something that it names does not work.
"""

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of tocsin.yml, for editors that complete and check."""
    from engine.config.json_schema import config_schema  # noqa: PLC0415  (pydantic's schemas, which `check` does without)

    print(json.dumps(config_schema(), ensure_ascii=False, indent=2))


@app.command("check")
def check(
    config: ConfigOption = DEFAULT_CONFIG,
    offline: Annotated[bool, typer.Option("--offline", help="Check the file and the rules only.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Check for a run with --once.")] = False,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Report everything that is wrong with the configuration and with what it names."""
    result = check_configuration(config, once, offline)
    if format is OutputFormat.JSON:
        print_json(result.as_json())
    else:
        print("\n".join(result.lines()))
    raise typer.Exit(result.exit_code)
