"""The report of a scan as one HTML page that needs nothing else: no server, no store, no network."""

from __future__ import annotations

from datetime import datetime

from engine.cli.overview import headline, remarks
from engine.cli.triage import Triage
from engine.web.history import History
from engine.web.pages import report_page
from engine.web.timeline import timeline


def render_html(triage: Triage, now: datetime) -> str:
    """Return the page: every incident in full, or what is minor where there is none, then what is no incident."""
    incidents = triage.incidents or triage.minor
    histories = [History(incident, timeline([incident])) for incident in incidents]
    return report_page(histories, headline(triage), remarks(triage), now)
