"""What reports of an audit say of it as a whole: in a terminal, in Markdown, on a page, in a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.model.phrases import moment
from engine.model.placeholders import FILE_OF_COMMANDS
from engine.model.rules import SEVERITIES
from engine.risks.judging import ClusterAudit
from engine.risks.risk import Risk

SHOWN = 20  # risks of one check in a report for people; JSON has all


def headline(result: ClusterAudit) -> str:
    """Return one sentence on the result; an all-clear only when everything could be judged."""
    if not result.risks:
        return "no risk in what could be judged; see what could not" if result.unseen else "no risk"
    counts = Counter(risk.severity for risk in result.risks)
    parts = ", ".join(f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity])
    return f"{_count(len(result.risks), 'risk')}: {parts}"


def shown_risks(result: ClusterAudit) -> Iterator[Risk]:
    """Yield the risks in order, of each check the first SHOWN."""
    counts = Counter[str]()
    for risk in result.risks:
        counts[risk.check] += 1
        if counts[risk.check] <= SHOWN:
            yield risk


def subject(result: ClusterAudit) -> str:
    """Return which cluster was judged, how large it is, and as of when."""
    cluster = result.cluster
    parts = [_count(len(cluster.brokers), "broker"), _count(len(cluster.topics), "topic"), _count(len(cluster.groups), "group")]
    parts += [_count(len(cluster.connectors), "connector")] if cluster.asked_connect else []
    when = f", as of {moment(cluster.at)}" if cluster.at is not None else ""
    named = f"{cluster.name} ({cluster.cluster_id})" if cluster.cluster_id else cluster.name
    return f"{named}: {', '.join(parts)}{when}"


def remarks(result: ClusterAudit) -> Iterator[str]:
    """Yield sentences on what is left out of the report, and on what its commands need."""
    counts = Counter(risk.check for risk in result.risks)
    for check, number in sorted(counts.items()):
        if number > SHOWN:
            yield f"{number - SHOWN:,} more of {check}; `tocsin audit --format json` lists them"
    for reason, number in Counter(reason for _, reason in result.accepted).items():
        yield f"{_count(number, 'risk')} ignored by the configuration: {reason}"
    if not result.cluster.asked_connect:
        yield "no Connect cluster was asked, so no connector is judged"
    if result.cluster.tls:
        yield f"{FILE_OF_COMMANDS} in the commands is a file with the settings by which Kafka's tools sign in"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
