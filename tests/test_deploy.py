"""What deploy/ gives to other programs: alert rules and a dashboard speak of metrics that a run has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from engine.metrics.run import RunMetrics
from engine.store import Store

DEPLOY = Path(__file__).parents[1] / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "tocsin.rules.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((DEPLOY / "grafana" / "tocsin.json").read_text(encoding="utf-8"))
DOCS = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
_VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def alerts() -> list[dict[str, Any]]:
    """Return every alert rule."""
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    """Yield every expression of the alerts and of the dashboard, its variables replaced."""
    yield from (rule["expr"] for rule in alerts())
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in _VARIABLES.items():
                text = text.replace(name, value)
            yield text


def exposed(folder: Path) -> set[str]:
    """Return the names of the metrics of a run, with the suffixes of its histograms."""
    store, metrics = Store.open(f"sqlite:///{folder}/tocsin.db"), RunMetrics(lambda: datetime.now(UTC))
    metrics.collect_from(store)
    types = re.findall(r"^# TYPE (\S+) (\S+)$", metrics.exposition().decode(), re.MULTILINE)
    store.close()
    names = {name for name, _ in types}
    return names | {
        f"{name}{suffix}" for name, kind in types if kind == "histogram" for suffix in ("_bucket", "_sum", "_count")
    }


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_an_expression_is_promql_over_metrics_that_exist(expression: str, tmp_path: Path) -> None:
    promql_parser.parse(expression)
    names = set(re.findall(r"\b(?:tocsin|process)_\w+", expression))
    assert names <= exposed(tmp_path)


def test_alerts_have_what_prometheus_wants_and_what_a_reader_needs() -> None:
    for rule in alerts():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names))


def test_panels_do_not_overlap() -> None:
    fields = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(fields) == len(set(fields))
    assert all(x < 24 for x, _ in fields)


def test_every_metric_is_documented(tmp_path: Path) -> None:
    documented = set(re.findall(r"^\| `(tocsin_\w+)`", DOCS, re.MULTILINE))
    own = {name for name in exposed(tmp_path) if name.startswith("tocsin_")}
    base = {name for name in own if not re.search(r"_(bucket|sum|count|created)$", name)}
    assert documented == base
