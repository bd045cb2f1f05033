"""Shared terms: texts that several rules look for, written once in `_terms.yml` and named by `field|modifier|term: name`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, RuleDocument, TextNode
from engine.dsl.report import Report, did_you_mean

MODIFIER = "term"

Terms = Mapping[str, tuple[str, ...]]


def terms_of(document: RuleDocument, report: Report) -> Terms:
    """Return the terms that a `_terms.yml` defines: a text or a list of texts for each name."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in document.root.entries:
        texts = value.items if isinstance(value, ListNode) else (value,)
        if not texts or not all(isinstance(text, TextNode) and text.value for text in texts):
            report.add(Code.WRONG_KIND, value, f"`{name.value}` must be a text or a list of texts, none of them empty")
            continue
        found[name.value] = tuple(text.value for text in texts if isinstance(text, TextNode))
    return found


def with_terms(node: MapNode, terms: Terms, report: Report) -> MapNode:
    """Return a detection in which every `field|term: name` holds the texts of that name; unknown names are reported."""
    return replace(node, entries=tuple(_entry(key, value, terms, report) for key, value in node.entries))


def _entry(key: TextNode, value: Node, terms: Terms, report: Report) -> tuple[TextNode, Node]:
    field, *modifiers = key.value.split("|")
    if MODIFIER not in modifiers:
        return key, _inside(value, terms, report)
    kept = "|".join((field, *(each for each in modifiers if each != MODIFIER)))
    return replace(key, value=kept), _spelled(value, terms, report)


def _inside(value: Node, terms: Terms, report: Report) -> Node:
    if isinstance(value, MapNode):
        return with_terms(value, terms, report)
    if isinstance(value, ListNode):
        return replace(value, items=tuple(_inside(item, terms, report) for item in value.items))
    return value


def _spelled(value: Node, terms: Terms, report: Report) -> Node:
    """Return the texts of the terms that `value` names, each standing where it is named."""
    named = value.items if isinstance(value, ListNode) else (value,)
    texts: list[Node] = []
    for each in named:
        if not isinstance(each, TextNode) or each.value not in terms:
            shown = each.value if isinstance(each, TextNode) else "a list or a map"
            report.add(Code.UNKNOWN_TERM, each, f"there is no term `{shown}`", did_you_mean(shown, terms, "see _terms.yml"))
            continue
        texts += [TextNode(each.mark, text, each.raw) for text in terms[each.value]]
    return ListNode(value.mark, tuple(texts))
