"""Shared terms: texts that several rules search for, defined in `_terms.yml` and used as `field|modifier|term: name`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, RuleDocument, TextNode
from engine.dsl.report import Report, did_you_mean

MODIFIER = "term"

Terms = Mapping[str, tuple[str, ...]]


def terms_of(document: RuleDocument, report: Report) -> Terms:
    """Return the terms of a `_terms.yml`, which has a text or a list of texts for each name; wrong ones are reported."""
    terms: dict[str, tuple[str, ...]] = {}
    for name, value in document.root.entries:
        texts = value.items if isinstance(value, ListNode) else (value,)
        if not texts or not all(isinstance(text, TextNode) and text.value for text in texts):
            report.add(Code.WRONG_KIND, value, f"`{name.value}` must be a text or a list of texts, none of them empty")
            continue
        terms[name.value] = tuple(text.value for text in texts if isinstance(text, TextNode))
    return terms


def with_terms(node: MapNode, terms: Terms, report: Report) -> MapNode:
    """Return the detection `node` with each `field|term: name` replaced by the texts of the term; report unknown names."""
    return replace(node, entries=tuple(_entry(key, value, terms, report) for key, value in node.entries))


def _entry(key: TextNode, value: Node, terms: Terms, report: Report) -> tuple[TextNode, Node]:
    field, *modifiers = key.value.split("|")
    if MODIFIER not in modifiers:
        return key, _expanded_below(value, terms, report)
    plain_key = "|".join((field, *(modifier for modifier in modifiers if modifier != MODIFIER)))
    return replace(key, value=plain_key), _expanded(value, terms, report)


def _expanded_below(value: Node, terms: Terms, report: Report) -> Node:
    if isinstance(value, MapNode):
        return with_terms(value, terms, report)
    if isinstance(value, ListNode):
        return replace(value, items=tuple(_expanded_below(item, terms, report) for item in value.items))
    return value


def _expanded(value: Node, terms: Terms, report: Report) -> Node:
    """Return the texts of the terms that `value` names, each with the place of its name."""
    nodes = value.items if isinstance(value, ListNode) else (value,)
    texts: list[Node] = []
    for node in nodes:
        if not isinstance(node, TextNode) or node.value not in terms:
            name = node.value if isinstance(node, TextNode) else "a list or a map"
            report.add(Code.UNKNOWN_TERM, node, f"there is no term `{name}`", did_you_mean(name, terms, "see _terms.yml"))
            continue
        texts += [TextNode(node.mark, text, node.raw) for text in terms[node.value]]
    return ListNode(value.mark, tuple(texts))
