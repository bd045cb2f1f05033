"""Kibana: write the data views and the dashboard that show incidents there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.saved_objects import LOGS_VIEW, ExportedViews, ndjson, saved_objects
from engine.config import ElasticsearchSettings, Settings, load
from engine.errors import UsageError

HELP = """\
Show incidents in Kibana: `export` writes data views for logs and incidents and a dashboard (incidents over time, open ones with
links to their pages, top rules, time to resolve, errors in the logs) as a file that Kibana 7.17 to 9 and OpenSearch Dashboards
import: Stack Management, Saved Objects, Import.

\b
Examples:
  tocsin kibana export -c tocsin.yml --out tocsin.ndjson
  tocsin kibana export -c tocsin.yml | curl -sS -H kbn-xsrf:true -H "Authorization: ApiKey $KEY" \\
    -F 'file=@-;filename=tocsin.ndjson' 'https://kibana.example/api/saved_objects/_import?overwrite=true'

\b
Exit codes: 0 written, 2 usage or bad configuration.
"""

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.callback()
def kibana() -> None:
    """Let `export` be named although it is the only one."""


@app.command("export")
def export(
    config: ConfigOption = DEFAULT_CONFIG,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; without it, to the terminal.")
    ] = None,
) -> None:
    """Write data views and a dashboard for this configuration, as NDJSON."""
    objects = saved_objects(exported_views(load(config)))
    text = ndjson(objects)
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out}: it cannot be written ({error.strerror})") from None
    print(f"{len(objects)} saved objects: {out}; import them under Stack Management, Saved Objects")


def exported_views(settings: Settings) -> ExportedViews:
    """Return the views that this configuration can show. Raises UsageError when no receiver writes incidents to
    Elasticsearch."""
    archive = next((receiver for receiver in settings.receivers if isinstance(receiver, ElasticsearchSettings)), None)
    if archive is None:
        raise UsageError(
            "no receiver of type elasticsearch is configured, so no index holds incidents to look at; see docs/elasticsearch.md"
        )
    at = settings.links.kibana
    if at is None:
        return ExportedViews(archive.index)
    names = {role: at.fields[role] for role in ("level", "logger") if at.fields.get(role)}
    fields = {f"{role}_field": name for role, name in names.items()}
    return ExportedViews(archive.index, at.data_view or LOGS_VIEW, at.pattern, at.time_field, **fields)
