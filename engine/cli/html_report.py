"""The report of a scan as one HTML page that needs nothing else: no server, no store, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from engine.cli.intake import Intake
from engine.cli.overview import headline, remarks
from engine.cli.triage import Triage
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.model.rules import Plan
from engine.model.words import ENGLISH, Words
from engine.neighbours import lines_with, neighbours_of, numbers_around
from engine.web.history import History
from engine.web.pages import report_page
from engine.web.timeline import timeline


def render_html(
    triage: Triage, now: datetime, intake: Intake | None = None, plan: Plan | None = None, words: Words = ENGLISH
) -> str:
    """Return the page: every incident in full, or what is minor where there is none, then what is no incident.

    Args:
        intake: the input of the scan, from which the lines around evidence are read again by `plan`; None for no such lines.
        words: the language of the page.
    """
    incidents = triage.incidents or triage.minor
    evidence = [event for incident in incidents for event in incident.evidence]
    around = {} if intake is None or plan is None else _around(evidence, intake, plan)
    histories = [History(incident, timeline([incident]), around=around) for incident in incidents]
    return report_page(histories, headline(triage, words), remarks(triage, words), now, words)


def _around(evidence: Sequence[Evidence], intake: Intake, plan: Plan) -> Mapping[str, Neighbours]:
    """Return the neighbours of `evidence` by event id; none when the input was stopped or cannot be read again."""
    if not intake.repeatable or intake.is_stopped:
        return {}
    numbers = numbers_around(evidence)
    return neighbours_of(evidence, lines_with(intake.chunks_from(numbers), numbers), plan)
