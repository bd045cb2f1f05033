"""Ask a Kafka cluster and its Connect workers what may break, and print the commands that prevent it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.audit_report import audit_markdown, audit_value, render_audit
from engine.cli.config_option import DEFAULT_CONFIG
from engine.cli.exits import FAILURE, FOUND, NOTHING_FOUND
from engine.cli.inputs import checks
from engine.cli.output import print_json
from engine.cli.surveying import Survey, ask_all, asked_sources, read_records, sources_at
from engine.cli.terminal import show
from engine.config import Settings, load
from engine.errors import UsageError
from engine.risks.judging import ClusterAudit, judged

app = typer.Typer()


class AuditFormat(str, Enum):
    """The format of the report of an audit."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


HELP = """\
Ask once, and print what works now and may break: replicas, min.insync.replicas, racks, groups behind, connectors, sizes.

Each risk has its present values, why it matters, the exact command, and what the command changes. The audit itself changes
nothing. Asked are the sources of type kafka-cluster and connect of the configuration, or the servers that are named here. A
record (`record:` of such a source, or --record) is judged without asking anybody.

\b
Examples:
  tocsin audit -c tocsin.yml
  tocsin audit --bootstrap kafka-1:9092 --connect-url http://connect-1:8083
  tocsin audit asked/kafka.log asked/connect.log
  tocsin audit --bootstrap kafka-1:9092 --record today.log
  tocsin audit --format markdown > audit.md
  tocsin audit --format json | jq '.clusters[].risks[] | [.severity, .what]'

\b
Exit codes: 0 no risk, 1 risks, 2 usage or bad configuration, 3 a server did not
answer, or something could not be judged and nothing else was found: no all-clear.
"""


@app.command("audit", help=HELP)
def run(
    records: Annotated[
        list[str] | None, typer.Argument(metavar="[RECORD...]", help="Records of what was asked, instead of asking.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", metavar="FILE", help="The configuration; ./tocsin.yml if nothing else is named."),
    ] = None,
    bootstrap: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The brokers to ask; with records, the address in commands.")
    ] = "",
    connect_url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A Connect worker to ask; repeat it for the others of one cluster."),
    ] = None,
    format: Annotated[
        AuditFormat, typer.Option("--format", help="Text to read, JSON, or Markdown for a ticket.")
    ] = AuditFormat.TEXT,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Append the answers to a file, for a later audit.")
    ] = None,
) -> None:
    """Audit; the help text is HELP."""
    if records and record is not None:
        raise UsageError("--record keeps what is asked, and with records nobody is asked; leave one of them out")
    urls = [url.strip() for url in connect_url or () if url.strip()]
    settings = _settings(config, needed=not (records or bootstrap or urls))
    survey = (
        read_records(records, bootstrap, urls[0] if urls else "")
        if records
        else ask_all(
            sources_at(bootstrap, urls) or asked_sources(_certain(settings)),
            settings.context if settings is not None else {},
            record,
        )
    )
    results = [judged(cluster, settings.accepted_risks if settings is not None else ()) for cluster in survey.clusters]
    if format is AuditFormat.JSON:
        print_json(audit_value(results, survey.failures))
    elif format is AuditFormat.MARKDOWN:
        print(audit_markdown(results, survey.failures), end="")
    else:
        show(lambda width: render_audit(results, survey.failures, width))
    raise typer.Exit(_exit_code(results, survey))


def _settings(config: Path | None, needed: bool) -> Settings | None:
    """Return the settings of `config`, or of the default file if they are `needed`; None without either."""
    path = config or (DEFAULT_CONFIG if needed else None)
    if needed and config is None and not DEFAULT_CONFIG.exists():
        raise UsageError("what is to be audited? Name a configuration with -c, a broker with --bootstrap, or a record")
    return load(path, checks()) if path is not None else None


def _certain(settings: Settings | None) -> Settings:
    assert settings is not None
    return settings


def _exit_code(results: list[ClusterAudit], survey: Survey) -> int:
    """Return the exit code: an audit in which something was not seen never ends like a clean one."""
    if survey.failures:
        return FAILURE
    if any(result.risks for result in results):
        return FOUND
    return FAILURE if any(result.unseen for result in results) else NOTHING_FOUND
