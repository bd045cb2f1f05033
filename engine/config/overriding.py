"""The `overrides` section of tocsin.yml: changes to shipped rules, whose exceptions are compiled like detections."""

from __future__ import annotations

from engine.config.schema import OverrideEntry
from engine.dsl import Override
from engine.dsl.detection import exceptions
from engine.dsl.document import MapNode, RuleDocument, TextNode
from engine.dsl.grammar import ExpressionError, parse
from engine.dsl.report import Report
from engine.model.expressions import Expression


def override(rule: str, entry: OverrideEntry, document: RuleDocument, report: Report) -> Override:
    """Return the override of `rule`; errors in its exceptions go to `report`."""
    node = document.find(["overrides", rule])
    exceptions_node = node.get("except") if isinstance(node, MapNode) else None
    item = exceptions(exceptions_node, report) if exceptions_node is not None else None
    unless = _unless(node.get("unless"), report) if isinstance(node, MapNode) else None
    return Override(entry.disabled, entry.severity or "", entry.labels, item, unless)


def _unless(node: object, report: Report) -> Expression | None:
    if not isinstance(node, TextNode) or not node.value:
        return None
    try:
        return parse(node.value)
    except ExpressionError as error:
        report.add(error.code, node, error.message, error.help, error.offset, error.length)
        return None
