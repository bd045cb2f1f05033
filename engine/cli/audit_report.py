"""The report of an audit: text for a terminal, Markdown, and JSON. Text of a cluster is treated like that of logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from engine.cli.markdown import plain_text, step_item
from engine.cli.output import count
from engine.cli.report import SEVERITY_STYLES, add_step, block, prose, wrapped
from engine.model.answers import iso, step_value
from engine.model.phrases import moment
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.risks.judging import ClusterAudit
from engine.risks.risk import FILE_OF_COMMANDS, Risk

SHOWN = 20  # risks of one check in a report for people; JSON has all


def render_audit(results: Sequence[ClusterAudit], failures: Sequence[str], width: int) -> Text:
    """Return the report as text, ending in a line end."""
    page = Text()
    for result in results:
        block(page, "Cluster", [visible(_cluster(result))], "bold")
        prose(page, "Result", headline(result), width)
        for risk in shown_risks(result):
            page.append("\n")
            _risk(page, risk, width)
        page.append("\n" if result.risks else "")
        for number, sentence in enumerate(_remarks(result)):
            prose(page, "Note" if number == 0 else "", sentence, width)
        for number, sentence in enumerate(result.unseen):
            prose(page, "Unseen" if number == 0 else "", sentence, width)
    for sentence in failures:
        prose(page, "Failed", sentence, width)
    return page


def audit_markdown(results: Sequence[ClusterAudit], failures: Sequence[str]) -> str:
    """Return the report as Markdown, ending in a line end."""
    parts = []
    for result in results:
        parts += [f"# Audit of {plain_text(_cluster(result))}", plain_text(headline(result))]
        parts += [_risk_section(risk) for risk in shown_risks(result)]
        parts += _list("Notes", list(_remarks(result)))
        parts += _list("What could not be judged", result.unseen)
    parts += _list("What did not answer", failures)
    return "\n\n".join(parts) + "\n"


def audit_value(results: Sequence[ClusterAudit], failures: Sequence[str]) -> Mapping[str, Any]:
    """Return the report as a JSON value. Keys may be added, never changed."""
    return {"clusters": [_result_value(result) for result in results], "failures": list(failures)}


def headline(result: ClusterAudit) -> str:
    """Return one sentence on the result; an all-clear only when everything could be judged."""
    if not result.risks:
        return "no risk in what could be judged; see what could not" if result.unseen else "no risk"
    counts = Counter(risk.severity for risk in result.risks)
    parts = ", ".join(f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity])
    return f"{count(len(result.risks), 'risk')}: {parts}"


def shown_risks(result: ClusterAudit) -> Iterator[Risk]:
    """Yield the risks in order, of each check the first SHOWN."""
    counts = Counter[str]()
    for risk in result.risks:
        counts[risk.check] += 1
        if counts[risk.check] <= SHOWN:
            yield risk


def _cluster(result: ClusterAudit) -> str:
    cluster = result.cluster
    parts = [count(len(cluster.brokers), "broker"), count(len(cluster.topics), "topic"), count(len(cluster.groups), "group")]
    parts += [count(len(cluster.connectors), "connector")] if cluster.asked_connect else []
    when = f", as of {moment(cluster.at)}" if cluster.at is not None else ""
    named = f"{cluster.name} ({cluster.cluster_id})" if cluster.cluster_id else cluster.name
    return f"{named}: {', '.join(parts)}{when}"


def _remarks(result: ClusterAudit) -> Iterator[str]:
    counts = Counter(risk.check for risk in result.risks)
    for check, number in sorted(counts.items()):
        if number > SHOWN:
            yield f"{number - SHOWN} more of {check}; --format json lists them"
    for reason, number in Counter(reason for _, reason in result.accepted).items():
        yield f"{count(number, 'risk')} ignored by the configuration: {reason}"
    if not result.cluster.asked_connect:
        yield "no Connect cluster was asked, so no connector is judged"
    if result.cluster.tls:
        yield f"{FILE_OF_COMMANDS} in the commands is a file with the settings by which Kafka's tools sign in"


def _risk(page: Text, risk: Risk, width: int) -> None:
    label = f" {risk.severity.upper()} "
    first, *rest = wrapped(risk.what, width - len(label) - 1)
    page.append(label, SEVERITY_STYLES[risk.severity]).append(f" {first}\n", "bold")
    for line in rest:
        page.append(f"{' ' * (len(label) + 1)}{line}\n", "bold")
    prose(page, "Why", risk.why, width)
    for number, step in enumerate(risk.fix, 1):
        add_step(page, number, step, width)
    prose(page, "Changes", risk.changes, width)
    block(page, "Check", [risk.check], "dim")


def _risk_section(risk: Risk) -> str:
    steps = [step_item(number, step) for number, step in enumerate(risk.fix, 1)]
    sections = [
        f"## {risk.severity.upper()}: {plain_text(risk.what)}",
        plain_text(risk.why),
        *steps,
        f"**Changes**: {plain_text(risk.changes)}",
        f"**Check**: {plain_text(risk.check)}",
    ]
    return "\n\n".join(sections)


def _list(heading: str, sentences: Sequence[str]) -> list[str]:
    return [f"## {heading}", "\n".join(f"- {plain_text(sentence)}" for sentence in sentences)] if sentences else []


def _result_value(result: ClusterAudit) -> Mapping[str, Any]:
    cluster = result.cluster
    return {
        "cluster": cluster.name,
        "cluster_id": cluster.cluster_id,
        "as_of": iso(cluster.at),
        "brokers": len(cluster.brokers),
        "topics": len(cluster.topics),
        "groups": len(cluster.groups),
        "connectors": len(cluster.connectors) if cluster.asked_connect else None,
        "risks": [_risk_value(risk) for risk in result.risks],
        "ignored": [{**_risk_value(risk), "reason": reason} for risk, reason in result.accepted],
        "unseen": list(result.unseen),
    }


def _risk_value(risk: Risk) -> Mapping[str, Any]:
    return {
        "check": risk.check,
        "severity": risk.severity,
        "kind": risk.kind,
        "subject": risk.subject,
        "what": risk.what,
        "why": risk.why,
        "fix": [step_value(step) for step in risk.fix],
        "changes": risk.changes,
    }
