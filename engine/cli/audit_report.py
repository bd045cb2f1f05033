"""The report of an audit: text for a terminal, Markdown, and JSON. Text of a cluster is treated like that of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from engine.cli.markdown import plain_text, step_item
from engine.cli.report import SEVERITY_STYLES, add_step, block, prose, wrapped
from engine.model.answers import iso, step_value
from engine.model.visible import visible
from engine.risks.judging import ClusterAudit
from engine.risks.risk import Risk
from engine.risks.summary import headline, remarks, shown_risks, subject


def render_audit(results: Sequence[ClusterAudit], failures: Sequence[str], width: int) -> Text:
    """Return the report as text, ending in a line end."""
    page = Text()
    for result in results:
        block(page, "Cluster", [visible(subject(result))], "bold")
        prose(page, "Result", headline(result), width)
        for risk in shown_risks(result):
            page.append("\n")
            _risk(page, risk, width)
        page.append("\n" if result.risks else "")
        for number, sentence in enumerate(remarks(result)):
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
        parts += [f"# Audit of {plain_text(subject(result))}", plain_text(headline(result))]
        parts += [_risk_section(risk) for risk in shown_risks(result)]
        parts += _list("Notes", list(remarks(result)))
        parts += _list("What could not be judged", result.unseen)
    parts += _list("What did not answer", failures)
    return "\n\n".join(parts) + "\n"


def audit_value(results: Sequence[ClusterAudit], failures: Sequence[str]) -> Mapping[str, Any]:
    """Return the report as a JSON value. Keys may be added, never changed."""
    return {"clusters": [_result_value(result) for result in results], "failures": list(failures)}


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
