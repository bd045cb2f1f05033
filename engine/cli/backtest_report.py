"""The result of a backtest as text, JSON, JUnit and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET  # writes only

from msgspec import Struct

from engine.cli.output import count
from engine.comparing import IncidentDifference, ReceiverMessages
from engine.model.answers import incident_value
from engine.model.incidents import Incident
from engine.model.phrases import moment
from engine.web.history import History
from engine.web.pages import report_page
from engine.web.timeline import timeline

MOST_RULES = 5  # that are named of a receiver


class Backtest(Struct, frozen=True):
    """The result of a backtest: the incidents of the configuration over its history, and what other rules make of them.

    Attributes:
        before: the incidents by the rules of the configuration, in order of time.
        told: how many of them each receiver would have been told of.
        after, told_after, differences: the same by the other rules, and what differs; None without other rules.
    """

    before: tuple[Incident, ...]
    told: tuple[ReceiverMessages, ...]
    after: tuple[Incident, ...] | None = None
    told_after: tuple[ReceiverMessages, ...] = ()
    differences: tuple[IncidentDifference, ...] = ()


def text_of(result: Backtest) -> Iterator[str]:
    """Yield the lines of the text."""
    if result.after is None:
        yield f"{count(len(result.before), 'incident')} over this history."
        yield from _incident_lines(result.before)
    else:
        yield (
            f"{count(len(result.before), 'incident')} by the rules of the configuration, {len(result.after):,} by the new ones:"
            f" {count(len(result.differences), 'difference')}."
        )
        for difference in result.differences:
            yield f"  {_when(difference.incident)}  {difference.sentence}{_labels(difference.incident)}"
    yield ""
    yield from _told_lines(result)


def json_of(result: Backtest) -> Mapping[str, Any]:
    """Return the JSON value."""
    value: dict[str, Any] = {"incidents": [incident_value(i) for i in result.before], "told": [_told(m) for m in result.told]}
    if result.after is not None:
        value["new"] = {"incidents": [incident_value(i) for i in result.after], "told": [_told(m) for m in result.told_after]}
        value["differences"] = [_difference(difference) for difference in result.differences]
    return value


def junit_of(result: Backtest) -> str:
    """Return JUnit's XML: a case for each incident of either side. It fails when it differs; without other rules none does."""
    differing = {id(side) for d in result.differences for side in (d.before, d.after) if side is not None}
    same = [incident for incident in result.before if id(incident) not in differing]
    suite = ET.Element(
        "testsuite",
        name="tocsin backtest",
        tests=str(len(same) + len(result.differences)),
        failures=str(len(result.differences)),
    )
    for incident in same:
        ET.SubElement(suite, "testcase", classname=incident.rule, name=f"{_when(incident)} {incident.title}")
    for difference in result.differences:
        incident = difference.incident
        case = ET.SubElement(suite, "testcase", classname=incident.rule, name=f"{_when(incident)} {incident.title}")
        ET.SubElement(case, "failure", type=difference.kind.value, message=difference.sentence)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def html_of(result: Backtest, now: datetime) -> str:
    """Return one page with every incident that differs, or every incident without other rules, as the pages show them."""
    incidents: Sequence[Incident] = [difference.incident for difference in result.differences]
    if result.after is None:
        incidents = result.before
    headline, *lines = text_of(result)
    listed, told = lines[: lines.index("")], lines[lines.index("") + 1 :]
    histories = [History(incident, timeline([incident])) for incident in incidents]
    return report_page(
        histories, headline, [("What differs" if result.after else "Incidents", listed), ("Who would be told", told)], now
    )


def _incident_lines(incidents: Sequence[Incident]) -> Iterator[str]:
    for incident in incidents:
        yield f"  {_when(incident)}  {incident.severity:<8}  {incident.title}{_labels(incident)}"


def _told_lines(result: Backtest) -> Iterator[str]:
    after = {messages.receiver: messages for messages in result.told_after}
    before = {messages.receiver: messages for messages in result.told}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        shown = new if result.after is not None else old
        was = f" (before: {old.count if old else 0:,})" if result.after is not None else ""
        if shown is None:
            yield f"{name} would be told of nothing{was}"
            continue
        yield f"{name} would be told of {count(shown.count, 'incident')}{was}{_days(shown)}{_muted(shown)}"
        for rule, number in list(shown.by_rule.items())[:MOST_RULES]:
            yield f"  {number:>5,}  {rule}"
        if len(shown.by_rule) > MOST_RULES:
            yield f"         and {count(len(shown.by_rule) - MOST_RULES, 'rule')} more"


def _days(messages: ReceiverMessages) -> str:
    if not messages.by_day:
        return ""
    day, most = max(messages.by_day.items(), key=lambda item: item[1])
    return f" on {count(len(messages.by_day), 'day')}, {most:,} on {day.isoformat()} alone"


def _muted(messages: ReceiverMessages) -> str:
    return f"; {messages.muted:,} more were within its mute times" if messages.muted else ""


def _when(incident: Incident) -> str:
    at = incident.opened_at or incident.first_seen
    return moment(at) if at is not None else "without a time"


def _labels(incident: Incident) -> str:
    shown = " ".join(f"{name}={value}" for name, value in incident.labels.items())
    return f"  ({shown})" if shown else ""


def _told(messages: ReceiverMessages) -> Mapping[str, Any]:
    days = {day.isoformat(): number for day, number in messages.by_day.items()}
    rules = dict(messages.by_rule)
    return {
        "receiver": messages.receiver,
        "incidents": messages.count,
        "by_day": days,
        "by_rule": rules,
        "muted": messages.muted,
    }


def _difference(difference: IncidentDifference) -> Mapping[str, Any]:
    before, after = difference.before, difference.after
    return {
        "kind": difference.kind.value,
        "sentence": difference.sentence,
        "before": None if before is None else before.id,
        "after": None if after is None else after.id,
    }
