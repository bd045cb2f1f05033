"""Watch the logs named in tocsin.yml like `run`, and leave the notifications to `notify`."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.commands.run import Beside, MasterOption, watch
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.own_log import LogFormat, LogFormatOption

app = typer.Typer()

HELP = """\
Run the job of a configuration without notifications: incidents are put into the store, and `tocsin notify` sends them, from the
same machine or, with a store in PostgreSQL, from another one. Everything else is as in `tocsin run`.

\b
Examples:
  tocsin job -c tocsin.yml
  tocsin job -c tocsin.yml --once
  spark-submit --master spark://spark-master:7077 tocsin_submit.py job -c tocsin.yml

\b
Exit codes: 0 ended, 2 usage or bad rules or configuration, 3 failure, or some input could not be read.
With --once a run that is stopped before its end has 130 (Ctrl-C) or 143.
"""


@app.command(help=HELP)
def job(
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="Read the present input, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, print what would be read, and end.")] = False,
    master: MasterOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run the job of `config`; the help text is HELP."""
    watch(config, once, dry_run, Beside(notifier=False, pages=False), master)
