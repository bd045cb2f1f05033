"""Prove that a line comes through: put a marked one into a source, and watch it reach an incident and a receiver."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from string import ascii_lowercase
from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.doctor.diagnosis import VitalSign, diagnose
from engine.cli.doctor.facts import gather
from engine.cli.exits import FAILURE
from engine.cli.inputs import checks
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.cli.proving.course import LASTS, ProofClocks, ProofCourse, ProofOutcome, missing_part
from engine.cli.proving.inlets import Inlet, chosen_inlet
from engine.config import Settings, load
from engine.errors import UsageError
from engine.model.proofs import Proof
from engine.store import Store

app = typer.Typer()

LookAtSigns = Callable[[], tuple[VitalSign, ...]]
WITHIN_S = 60.0
NONCE_LETTERS = 12  # letters, as numbers may be taken for those of cards and be masked

HELP = """\
Put a marked line into a source of a run that is at work, and say how long it takes to become an incident, to be told to a
receiver, and to be resolved; or where it stopped and what to do. For after an upgrade, and for cron with --quiet.

Nobody is paged: the incident of such a line (rule tocsin-proof, severity low) is routed by no route. Only the receiver that
--receiver names is told, with a message that says that it is a proof, and it is resolved at once; without --receiver nobody is.
A line that somebody else writes into a log is told to nobody.

The line goes into a file of its own (tocsin-prove.log) where a folder or pattern of the source has room for one, else to the
end of a log; or into a topic, or an index, as one record. This user must be allowed to write there.

\b
Examples:
  tocsin prove -c tocsin.yml
  tocsin prove -c tocsin.yml --receiver ops
  tocsin prove -c tocsin.yml --source broker-logs --quiet

\b
Exit codes: 0 it came through, 2 usage or bad configuration, 3 it stopped, or nothing
runs.
"""


@app.command(help=HELP)
def prove(
    config: ConfigOption = DEFAULT_CONFIG,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="A topic, path, index or type; the first source without.")
    ] = "",
    receiver: Annotated[str, typer.Option("--receiver", metavar="NAME", help="Who is told; nobody without.")] = "",
    within: Annotated[float, typer.Option("--within", metavar="SECONDS", help="How long each stage may take.")] = WITHIN_S,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing when the line comes through.")] = False,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Send a proof through the run of `config`; the help text is HELP."""
    settings = load(config, checks())
    names = [settings_.name for settings_ in settings.receivers]
    if receiver and receiver not in names:
        raise UsageError(f"there is no receiver `{receiver}`; there are: {', '.join(names)}")
    inlet = chosen_inlet(settings, source)

    def signs() -> tuple[VitalSign, ...]:
        return diagnose(str(config), gather(settings)).signs

    missing = missing_part(signs(), receiver)
    outcome = ProofOutcome((), missing) if missing is not None else _proved(settings, inlet, receiver, within, signs)
    _print(str(config), outcome, quiet, format)
    raise typer.Exit(FAILURE if outcome.stopped is not None else 0)


def _proved(settings: Settings, inlet: Inlet, receiver: str, within_s: float, signs: LookAtSigns) -> ProofOutcome:
    store = Store.open(settings.store)
    try:
        proof = Proof(
            "".join(secrets.choice(ascii_lowercase) for _ in range(NONCE_LETTERS)), receiver, datetime.now(UTC) + LASTS
        )
        return ProofCourse(store, proof, ProofClocks(time.monotonic, time.sleep), within_s, signs).run(inlet)
    finally:
        store.close()


def _print(path: str, outcome: ProofOutcome, quiet: bool, format: OutputFormat) -> None:
    if quiet and outcome.stopped is None:
        return
    if format is OutputFormat.TEXT:
        print("\n".join(outcome.lines(path)))
        return
    stopped = outcome.stopped
    print_json(
        {
            "file": path,
            "stages": [
                {"name": stage.name, "seconds": round(stage.seconds, 3), "message": stage.sentence} for stage in outcome.stages
            ],
            "stopped": None
            if stopped is None
            else {
                "name": stopped.name,
                "message": stopped.sentence,
                "remedy": stopped.remedy,
                "signs": [{"area": sign.area, "name": sign.name, "message": sign.sentence} for sign in stopped.signs],
            },
        }
    )
