"""Read one YAML file into a RuleDocument and report the YAML features that the rule language does not have.

Every scalar is text: booleans, numbers and dates are not guessed. Anchors, aliases, tags, duplicate keys, several documents
and deep nesting are findings. No text raises; every error becomes a finding.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgspec import Struct, field

from engine.dsl.codes import Code
from engine.dsl.document import START, ListNode, MapNode, Node, RuleDocument, SourceMark, TextNode
from engine.dsl.report import Report

MAX_FILE_BYTES = 128 * 1024
MAX_NESTING = 16

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMENT_FOLLOWS = re.compile(r"[ \t]+#")
_UNQUOTED = re.compile(r"""^\s*(?:- )?(?:[\w.|-]+:\s+|- )(?P<text>[^\s'"|>].*)$""")
_NO_KEY = TextNode(START, "", "")
_INDENTATION = re.compile(r"\s*(?:-\s+)?(?:[\w.-]+:\s+)?")
_BLOCK_HELP = "put `>-` after the key and the text, indented, on the next line"


class _OpenCollection(Struct):
    """A list or map that is still open. `key` is the map key whose value comes next; None when a key comes next."""

    event: yaml.CollectionStartEvent
    items: list[Node] = field(default_factory=list)
    entries: dict[str, tuple[TextNode, Node]] = field(default_factory=dict)
    key: TextNode | None = None


def read(path: str, data: bytes) -> tuple[RuleDocument, Report]:
    """Return the document in `data` and the findings so far. Its root is empty when the YAML is invalid or not one map."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        report = Report(RuleDocument(path, (), MapNode(START, ())))
        report.add(Code.FILE_UNREADABLE, SourceMark(0, 0, 0), f"byte {error.start} is not UTF-8", "save the file as UTF-8")
        return report.document, report
    lines = tuple(text.split("\n"))
    report = Report(RuleDocument(path, lines, MapNode(START, ())))
    if len(data) > MAX_FILE_BYTES:
        message = f"the file has {len(data)} bytes; the limit is {MAX_FILE_BYTES}"
        report.add(Code.FILE_TOO_LARGE, START, message, "one rule a file; shorten its test logs")
        return report.document, report
    root = _Builder(text, report).build()
    report.document = RuleDocument(path, lines, root)
    return report.document, report


class _Builder:
    """Turns YAML events into nodes with an explicit stack, so that too deep nesting is a finding and not a RecursionError."""

    def __init__(self, text: str, report: Report) -> None:
        self._text = text
        self._report = report
        self._stack: list[_OpenCollection] = []
        self._roots: list[Node] = []

    def build(self) -> MapNode:
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                if not self._handle(event):
                    return MapNode(START, ())
        except yaml.MarkedYAMLError as error:
            self._report_syntax(error)
            return MapNode(START, ())
        except (yaml.YAMLError, UnicodeError) as error:
            self._report.add(Code.YAML_SYNTAX, START, f"not valid YAML: {_first_line(error)}", "remove the control character")
            return MapNode(START, ())
        return self._only_root()

    def _only_root(self) -> MapNode:
        if len(self._roots) == 1 and isinstance(self._roots[0], MapNode):
            return self._roots[0]
        at = self._roots[min(1, len(self._roots) - 1)] if self._roots else START
        several = "holds several documents" if len(self._roots) > 1 else "is not a map of keys"
        problem = several if self._roots else "is empty"
        self._report.add(Code.NOT_ONE_MAP, at, f"the file {problem}", "write one document of `key: value` lines")
        return MapNode(START, ())

    def _handle(self, event: yaml.Event) -> bool:
        """Handle one event; return False to stop reading."""
        if isinstance(event, yaml.NodeEvent):
            self._refuse_extras(event)
        if isinstance(event, yaml.CollectionStartEvent):
            self._stack.append(_OpenCollection(event))
            if len(self._stack) > MAX_NESTING:
                self._report.add(Code.TOO_DEEP, self._mark(event), f"nested deeper than {MAX_NESTING} levels")
                return False
        elif isinstance(event, yaml.CollectionEndEvent):
            self._place(self._close(self._stack.pop()))
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            self._place(self._scalar(event))
        return True

    def _refuse_extras(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            message = f"`{sign}{event.anchor}` is an alias or anchor; the rule language has none"
            self._report.add(Code.ANCHOR, self._mark(event), message, f"quote the text, or {_BLOCK_HELP}")
        tag = getattr(event, "tag", None)
        if tag is not None:
            message = f"the tag `{tag}` is not part of the rule language"
            self._report.add(Code.TAG, self._mark(event), message, f"quote the text, or {_BLOCK_HELP}")

    def _scalar(self, event: yaml.ScalarEvent | yaml.AliasEvent) -> TextNode:
        start, end = self._mark(event).index, _place_of(event.end_mark).index
        style = getattr(event, "style", None) or ""
        cut = not style and _COMMENT_FOLLOWS.match(self._text, end) is not None
        value = getattr(event, "value", self._text[start:end])  # an alias has no value: take its source text
        return TextNode(self._mark(event), value, self._text[start:end], style, cut)

    def _close(self, collection: _OpenCollection) -> Node:
        mark, flow = self._mark(collection.event), bool(collection.event.flow_style)
        if isinstance(collection.event, yaml.SequenceStartEvent):
            return ListNode(mark, tuple(collection.items), flow)
        return MapNode(mark, tuple(collection.entries.values()), flow)

    def _place(self, node: Node) -> None:
        """Add a finished node to its parent: the document, a list, or a map as key or value."""
        if not self._stack:
            self._roots.append(node)
            return
        parent = self._stack[-1]
        if isinstance(parent.event, yaml.SequenceStartEvent):
            parent.items.append(node)
        elif parent.key is None:
            parent.key = self._as_key(node)
        else:
            self._add_entry(parent, parent.key, node)
            parent.key = None

    def _as_key(self, node: Node) -> TextNode:
        if isinstance(node, TextNode):
            return node
        self._report.add(Code.KEY_NOT_TEXT, node, "a key must be text, not a list or a map", "quote the text before the colon")
        return _NO_KEY

    def _add_entry(self, parent: _OpenCollection, key: TextNode, value: Node) -> None:
        if key is _NO_KEY:
            return
        earlier = parent.entries.get(key.value)
        if earlier is not None:
            message = f"`{key.value}` stands twice; the first is in line {earlier[0].mark.line}"
            self._report.add(Code.DUPLICATE_KEY, key, message, "keep one of them")
            return
        parent.entries[key.value] = (key, value)

    def _report_syntax(self, error: yaml.MarkedYAMLError) -> None:
        mark = _place_of(error.problem_mark or error.context_mark)
        if error.context_mark and not any(self._report.document.lines[mark.line - 1 :]):
            mark = _place_of(error.context_mark)  # an error at the end of the file: show where the unfinished part began
        unquoted = _UNQUOTED.match(self._report.document.line(mark.line))
        if "\t" in _indentation(self._report.document.line(mark.line)):
            self._report.add(Code.YAML_SYNTAX, mark, "a tab indents this line", "YAML is indented with spaces only")
            return
        problem = f"not valid YAML: {error.problem or error.context or 'cannot be read'}"
        if unquoted and _looks_like_text(unquoted["text"]):
            column = unquoted.start("text") + 1
            place = SourceMark(mark.line, column, 0)
            message = "YAML does not take this unquoted text as text"
            self._report.add(Code.YAML_PLAIN, place, message, _BLOCK_HELP, length=len(unquoted["text"]))
        else:
            self._report.add(
                Code.YAML_SYNTAX, mark, problem, "check indentation, quotes and brackets of this and the line before"
            )

    def _mark(self, event: yaml.Event) -> SourceMark:
        return _place_of(event.start_mark)


def _place_of(mark: Any) -> SourceMark:
    return SourceMark(mark.line + 1, mark.column + 1, mark.index) if mark else START


def _indentation(line: str) -> str:
    """Return the blanks at the start of a line, also those behind the dash of a list item or the colon of a key."""
    head = _INDENTATION.match(line)
    return head[0] if head else ""


def _looks_like_text(text: str) -> bool:
    """Return whether an unquoted value is invalid YAML due to its text: `: ` in it, or an indicator at its start."""
    return ": " in text or text.endswith(":") or text[0] in "[{&*!@`%,]}?#"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
