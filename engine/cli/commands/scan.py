"""Triage log files: what broke, since when, the cause, the proof, and the fix. Needs no Java."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from msgspec.structs import replace

from engine.cli.answer import document
from engine.cli.coverage import within_window, without
from engine.cli.exits import BAD_REQUEST, FAILURE, FOUND, INTERRUPTED, NOTHING_FOUND
from engine.cli.how_read import audit_report, reading_cost
from engine.cli.intake import Intake
from engine.cli.output import print_json
from engine.cli.overview import render_triage
from engine.cli.rulebook import Rulebook, open_rulebook, with_roster
from engine.cli.signals import stopping_on_interrupt
from engine.cli.terminal import show
from engine.cli.triage import Triage, triage, triage_again
from engine.cli.windows import TimeWindow, shown_in, window_of
from engine.errors import UsageError
from engine.gc_tuning import freeze_survivors
from engine.language import LANGUAGES, words_of
from engine.model.rules import Plan
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words

if TYPE_CHECKING:
    from engine.config import Settings

app = typer.Typer()


class ScanFormat(str, Enum):
    """The format of the report of a scan."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


HELP = """\
Read log files with the rules and tell what broke, since when, why, what proves it, and what to do.

Takes plain and compressed files (gz, zst, xz, bz2), tar and zip archives, directories (searched for logs; YAML and hidden
files are left out; Markdown with fences is read only where there is no log), and - for standard input. UTF-16 and cp949 are
recognised, and so are the output of grep -rH, Markdown with fences, and answers of Elasticsearch's _search and of Loki's API.
Logs of brokers, Connect, clients, `docker logs` and exports may be mixed: everything is placed at its own time.
--rules may be given more than once; the word `builtin` stands for the built-in rules.

\b
Examples:
  tocsin scan server.log connect.log
  tocsin scan /var/log/kafka --tz Asia/Seoul --roster 1,2,3
  tocsin scan /var/lib/docker/containers /var/log/pods
  tocsin scan support-bundle.tar.gz --bootstrap kafka-1:9092
  docker logs kafka-connect 2>&1 | tocsin scan -
  tocsin scan server.log --rules builtin --rules ./my-rules
  tocsin scan logs/ --since 2022-10-05T16:00 --until 2022-10-05T18:00 --tz Asia/Seoul
  tocsin scan logs/ --format json | jq '.incidents[].title'
  tocsin scan logs/ --html report.html
  tocsin scan logs/ --html report.html --language ko
  tocsin scan logs/ --format markdown > incident.md
  tocsin scan server.log --stats --audit
  tocsin scan --follow /var/log/kafka/server.log

\b
Exit codes: 0 nothing found in all of the input, 1 incidents found, 2 usage or
bad rules, 3 some input could not be read or judged: no all-clear. With 2 and 3
the rest is read and reported all the same. Ctrl-C ends the input and reports
what was found until then (130); a second one ends at once.
"""


@app.command(help=HELP)
def scan(  # noqa: PLR0913, PLR0917  (options)
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, directories, or - for standard input.")],
    rules: Annotated[list[Path] | None, typer.Option(metavar="DIR", help="Rules to use instead of the built-in ones.")] = None,
    roster: Annotated[str, typer.Option(metavar="1,2,3", help="Broker ids that must be heard from.")] = "",
    bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="The bootstrap servers, for the commands of fixes.")] = "",
    connect_url: Annotated[str, typer.Option(metavar="URL", help="Connect's REST API, for the commands of fixes.")] = "",
    tz: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of stamps that name none.")] = "UTC",
    since: Annotated[str, typer.Option(metavar="TIME", help="Judge what is later: 2h (back from now), 2022-10-05T17:00.")] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Judge what is earlier.")] = "",
    display_tz: Annotated[
        str, typer.Option(metavar="ZONE", help="Zone in which times are shown; that of --tz if not given.")
    ] = "",
    format: Annotated[
        ScanFormat, typer.Option("--format", help="Text to read, JSON, or Markdown for a ticket.")
    ] = ScanFormat.TEXT,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report, with its timelines, as one HTML page too.")
    ] = None,
    language: Annotated[
        str, typer.Option(metavar="en|ko", help="The language of that page; that of web.language if not given.")
    ] = "",
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label for every line.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", metavar="FILE", help="A configuration: its `redact` and `clusters` are used."),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print how the input was read, on standard error.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Read some of the input by the reference too; report differences.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as tail -F does: tell incidents as they arise and end.")
    ] = False,
) -> None:
    """Triage the logs at `paths`; the help text is HELP."""
    labels = _labels(label or ()) | {"timezone": _zone(tz)}
    book = open_rulebook(rules)
    settings = None if config is None else _settings(config)
    words = _words(language, settings)
    plan = _plan(with_roster(book.plan, roster), settings, {"bootstrap": bootstrap, "connect_url": connect_url}, words)
    shown_zone = ZoneInfo(_zone(display_tz, "--display-tz") if display_tz else labels["timezone"])
    if follow:
        _refuse_beside_follow({"--since": since, "--until": until, "--html": html, "--stats": stats, "--audit": audit}, format)
        from engine.cli.follow_report import follow_files  # noqa: PLC0415  (loads the stages of the job)

        raise typer.Exit(follow_files(paths, labels, plan, shown_zone, as_json=format is ScanFormat.JSON))
    window = window_of(since, until, ZoneInfo(labels["timezone"]), datetime.now(UTC))
    intake = Intake(paths, labels)
    answer = _judged(intake, plan, window, audit, one_cluster="cluster" in labels)
    answer = replace(answer, notes=(*answer.notes, *(f"{path}: not used; its rules have errors" for path in book.left_out)))
    coverage = without(answer.coverage, intake.refused, answer.quarantined)
    coverage = coverage if window.is_open else within_window(coverage, window.sentence(shown_zone), answer.outside, shown_zone)
    answer = replace(answer, coverage=coverage)
    _report_problems(book, intake, answer)
    for sentence in (*(reading_cost(answer.cost) if stats else ()), *(audit_report(answer) if audit else ())):
        print(f"tocsin: {visible(sentence)}", file=sys.stderr)
    _print_report(answer if format is ScanFormat.JSON else _shown_in(answer, shown_zone), format)
    if html is not None:  # last: a page that cannot be written takes nothing from the report
        _write_html(html, answer, intake, plan, words)
    raise typer.Exit(INTERRUPTED if intake.is_stopped else _exit_code(book, intake, answer))


def _words(language: str, settings: Settings | None) -> Words:
    """Return the words of `language`, else those of the pages. Raises UsageError when there is no such language."""
    name = language or (settings.web.language if settings is not None else "") or ENGLISH.language
    if name not in LANGUAGES:
        raise UsageError(f"--language {name}: known are {', '.join(LANGUAGES)}")
    return words_of(name)


def _plan(plan: Plan, settings: Settings | None, given: Mapping[str, str], words: Words) -> Plan:
    """Return `plan` with what a configuration says of redaction and clusters, with the values `given` for commands, and with
    texts in the language of `words` too."""
    if words.texts:
        plan = replace(plan, languages=(words.language,))
    if settings is not None:
        plan = replace(plan, redaction=settings.redaction, context={**plan.context, **settings.context})
    return replace(plan, context={**plan.context, **{name: value for name, value in given.items() if value}})


def _print_report(answer: Triage, format: ScanFormat) -> None:
    if format is ScanFormat.JSON:
        print_json(document(answer))
    elif format is ScanFormat.MARKDOWN:
        from engine.cli.markdown import render_markdown  # noqa: PLC0415  (other formats do not need it)

        print(render_markdown(answer), end="")
    else:
        show(lambda width: render_triage(answer, width))


def _judged(intake: Intake, plan: Plan, window: TimeWindow, audit: bool, one_cluster: bool) -> Triage:
    """Return the result of scanning the input, up to the first Ctrl-C."""
    freeze_survivors()  # rules and learnt texts: a full collection would look at them again and again
    with stopping_on_interrupt(intake.stop):
        answer = triage(intake.chunks(), plan, intake.notes, audit, window)
    if intake.is_stopped:
        stopped = "the scan was stopped: what was not read by then is not judged; run it again for the rest"
        return replace(answer, coverage=replace(answer.coverage, gaps=(stopped, *answer.coverage.gaps)))
    if intake.repeatable:
        return triage_again(answer, intake.chunks, plan, intake.notes, one_cluster=one_cluster, window=window, audited=audit)
    return answer


def _shown_in(answer: Triage, zone: ZoneInfo) -> Triage:
    """Return `answer` with the times of its incidents in `zone`."""
    shown = {
        name: tuple(shown_in(incident, zone) for incident in getattr(answer, name))
        for name in ("incidents", "pending", "minor")
    }
    return replace(answer, **shown)


def _write_html(path: Path, answer: Triage, intake: Intake, plan: Plan, words: Words) -> None:
    """Write the report as one page that needs nothing else. Raises UsageError when the file cannot be written."""
    from engine.cli.html_report import render_html  # noqa: PLC0415  (loads the templates, which other scans do not need)

    page = render_html(answer, datetime.now(UTC), intake, plan, words)
    try:
        path.write_bytes(page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written there ({error.strerror})") from None


def _settings(config: Path) -> Settings:
    """Return the settings of `config`. Raises UsageError and ConfigError."""
    from engine.config import load  # noqa: PLC0415  (imports pydantic, which a scan without a configuration does not need)

    return load(config)


def _report_problems(book: Rulebook, intake: Intake, answer: Triage) -> None:
    """Print every problem with the rules and the input, in full, on stderr."""
    for diagnostic in book.diagnostics:
        print(diagnostic.render(), end="\n\n", file=sys.stderr)
    for sentence in (*intake.refused, *(letter.sentence for letter in answer.quarantined)):
        print(f"tocsin: {visible(sentence)}", file=sys.stderr)


def _exit_code(book: Rulebook, intake: Intake, answer: Triage) -> int:
    """Return the exit code: a scan that left out rules or input never ends like a clean one."""
    if book.diagnostics:
        return BAD_REQUEST
    if intake.refused or answer.quarantined or answer.audit:
        return FAILURE
    if answer.incidents:
        return FOUND
    return FAILURE if answer.coverage.gaps else NOTHING_FOUND


def _refuse_beside_follow(options: Mapping[str, object], format: ScanFormat) -> None:
    """Raise UsageError for options that a scan without an end does not take."""
    given = [name for name, value in options.items() if value]
    given += ["--format markdown"] if format is ScanFormat.MARKDOWN else []
    if given:
        raise UsageError(f"--follow has no end, so it does not take {', '.join(given)}")


def _labels(pairs: Sequence[str]) -> dict[str, str]:
    """Return the labels of `key=value` pairs. Raises UsageError for anything else."""
    invalid = [pair for pair in pairs if not pair.partition("=")[0] or "=" not in pair]
    if invalid:
        raise UsageError(f"--label takes key=value, not: {', '.join(invalid)}")
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def _zone(name: str, option: str = "--tz") -> str:
    """Return `name`, the value of `option`. Raises UsageError when it is no time zone."""
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"{option} takes a zone such as Europe/Berlin or UTC, not: {name}") from None
