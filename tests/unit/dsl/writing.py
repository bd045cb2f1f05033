"""Rules for these tests, written to a folder."""

from __future__ import annotations

from pathlib import Path

from engine.dsl.document import MapNode
from engine.dsl.reader import read
from engine.dsl.report import Report
from engine.model.diagnostics import Diagnostic

BASE = """\
id: {id}
title: "{title}"
severity: {severity}
component: any
{body}
runbook:
  cause: Cause
  impact: Impact
"""
SEEN = "detection: {seen: something bad, condition: seen}"
COUNTED = """\
correlation:
  type: event_count
  rules: [seen-once]
  group-by: [cluster, topic]
  timespan: 10m
  condition: {gte: 4, lt: 9}
"""
SILENT = """\
correlation:
  type: absence
  of: broker
  group-by: {broker: broker}
  timespan: heartbeat
  sooner: {rules: [seen-once], naming: {broker: topic}, timespan: 90s}
  unless: {rules: [seen-once]}
"""
WITH_TOPIC = 'detection: {seen: "something bad in {topic}, {size:bytes} bytes", condition: seen}\nentity: [topic]'
BROKER = """\
name: broker
label: broker
names: ['[KafkaServer id={member:int}]']
heartbeats: [{log: 'Removed {n:int} offsets', every: 10m}]
"""


def rule(id: str, body: str = SEEN, severity: str = "high", title: str = "Something") -> str:
    """Return the text of a rule file."""
    return BASE.format(id=id, title=title, severity=severity, body=body)


def write(folder: Path, **texts: str) -> Path:
    """Write each text as `<name>.yml` (underscores become dashes) and return the folder."""
    for name, text in texts.items():
        (folder / f"{name.replace('_', '-')}.yml").write_text(text, encoding="utf-8")
    return folder


def read_map(text: str) -> tuple[MapNode, Report]:
    """Return the root of a YAML text and its report."""
    document, report = read("test.yml", text.encode())
    return document.root, report


def codes(found: tuple[Diagnostic, ...] | list[Diagnostic]) -> list[str]:
    """Return the codes of findings, in order."""
    return [each.code for each in found]
