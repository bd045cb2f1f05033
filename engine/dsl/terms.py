"""Shared terms: texts that several rules search for, used as `field|modifier|term: name`.

A file `terms/<library>.yml` defines the wordings of one library, each used as `<library>.<name>`; a file `_terms.yml` of any
rule folder defines others, used by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from msgspec.structs import replace

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, RuleDocument, TextNode
from engine.dsl.files import TERM_FILES
from engine.dsl.report import Report, did_you_mean

MODIFIER = "term"

Terms = Mapping[str, tuple[str, ...]]


def terms_of(document: RuleDocument, report: Report) -> Terms:
    """Return the texts of each term of a file by the name that rules use; wrong ones are reported.

    The file has a text or a list of texts for each name.
    """
    terms: dict[str, tuple[str, ...]] = {}
    prefix = prefix_of(document.path)
    for name, value in document.root.entries:
        texts = value.items if isinstance(value, ListNode) else (value,)
        if not texts or not all(isinstance(text, TextNode) and text.value for text in texts):
            report.add(Code.WRONG_KIND, value, f"`{name.value}` must be a text or a list of texts, none of them empty")
            continue
        terms[prefix + name.value] = tuple(text.value for text in texts if isinstance(text, TextNode))
    return terms


def prefix_of(path: str) -> str:
    """Return the prefix of a file's terms where rules use them: the library and a dot, or nothing."""
    file = PurePath(path)
    return "" if file.name in TERM_FILES else f"{file.stem}."


def used_terms(node: Node) -> Iterator[str]:
    """Yield the names of the terms that a detection uses."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from used_terms(item)
    elif isinstance(node, MapNode):
        for key, value in node.entries:
            if MODIFIER in key.value.split("|")[1:]:
                yield from (name.value for name in _nodes(value) if isinstance(name, TextNode))
            else:
                yield from used_terms(value)


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
    texts: list[Node] = []
    for node in _nodes(value):
        if not isinstance(node, TextNode) or node.value not in terms:
            name = node.value if isinstance(node, TextNode) else "a list or a map"
            report.add(
                Code.UNKNOWN_TERM, node, f"there is no term `{name}`", did_you_mean(name, terms, "see the files of rules/terms")
            )
            continue
        texts += [TextNode(node.mark, text, node.raw) for text in terms[node.value]]
    return ListNode(value.mark, tuple(texts))


def _nodes(value: Node) -> tuple[Node, ...]:
    return value.items if isinstance(value, ListNode) else (value,)
