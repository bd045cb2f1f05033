"""Say how a running job and notifier are: what is off, why it matters, and what to do."""

from __future__ import annotations

import time

import typer
from msgspec.structs import replace

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.doctor.diagnosis import diagnose
from engine.cli.doctor.facts import gather
from engine.cli.doctor.rule_times import measured
from engine.cli.inputs import checks
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.config import load

app = typer.Typer()

HELP = """\
Say how the run of a configuration is, from beside it: job and notifier, store and checkpoint, sources, receivers, rules,
clocks, and what /readyz says. Each thing that is off has a line on why it matters and one on what to do. It reads what the
parts report into the store, measures for two seconds what the rules cost on the last lines of files and the latest evidence,
asks no source and no receiver, and changes nothing (`tocsin config check` tries what a configuration names, `tocsin prove`
sends a line through all of it).

\b
Examples:
  tocsin doctor -c tocsin.yml
  tocsin doctor -c tocsin.yml --format json

\b
Exit codes: 0 all is well, 1 something is off, 2 usage or bad configuration, 3 not
running, or the store cannot be read.
"""


@app.command(help=HELP)
def doctor(config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """Report on the run of `config`; the help text is HELP."""
    settings = load(config, checks())
    facts = gather(settings)
    times = None if facts.store is None else measured(settings, time.perf_counter)
    diagnosis = diagnose(str(config), replace(facts, rule_times=times))
    if format is OutputFormat.JSON:
        print_json(diagnosis.as_json())
    else:
        print("\n".join(diagnosis.lines()))
    raise typer.Exit(diagnosis.exit_code)
