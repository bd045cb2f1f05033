"""A YAML file as a tree of untyped nodes, each with its line and column.

Every scalar stays text until the schema types it; positions inside a scalar (folded, quoted or plain) can be traced back
to the file. Built from PyYAML's event stream only, so no YAML tag is ever resolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

Loc = Sequence[str | int]


class SourceMark(Struct, frozen=True):
    """A place in a file: line and column are 1-based and count characters; `index` is 0-based."""

    line: int
    column: int
    index: int


class TextNode(Struct, frozen=True):
    """A scalar. `raw` is its source text from `mark` on; `style` is YAML's indicator: `|`, `>`, `'`, `"` or empty (plain).

    `cut`: plain text that ended because YAML takes ` #` for the start of a comment.
    """

    mark: SourceMark
    value: str
    raw: str
    style: str = ""
    cut: bool = False


class ListNode(Struct, frozen=True):
    """A YAML sequence."""

    mark: SourceMark
    items: tuple[Node, ...]
    flow: bool = False


class MapNode(Struct, frozen=True):
    """A YAML mapping in file order; keys are unique text."""

    mark: SourceMark
    entries: tuple[tuple[TextNode, Node], ...]
    flow: bool = False

    def get(self, key: str) -> Node | None:
        """Return the value under `key`, None when there is none."""
        return next((value for name, value in self.entries if name.value == key), None)

    def key(self, key: str) -> TextNode | None:
        """Return the node of the key `key` itself; None when there is none."""
        return next((name for name, _ in self.entries if name.value == key), None)


Node = TextNode | ListNode | MapNode
Plain = str | list["Plain"] | dict[str, "Plain"]

START = SourceMark(1, 1, 0)


class RuleDocument(Struct, frozen=True):
    """One file: its path as shown to users, its lines, and its root map (empty when it could not be read)."""

    path: str
    lines: tuple[str, ...]
    root: MapNode

    def find(self, loc: Loc) -> Node:
        """Return the node at `loc` (keys and indices), or the deepest one on the way there."""
        node: Node = self.root
        for step in loc:
            child = _child(node, step)
            if child is None:
                return node
            node = child
        return node

    def key(self, loc: Loc) -> Node:
        """Return the key node of the map entry at `loc`; the node at `loc` when that is not a map entry."""
        parent = self.find(loc[:-1])
        key_node = parent.key(str(loc[-1])) if loc and isinstance(parent, MapNode) else None
        return key_node or self.find(loc)

    def whole(self, loc: Loc, entries: Sequence[object]) -> bool:
        """Return whether `entries` are the whole list at `loc`; false when some entries had errors and were left out."""
        node = self.find(loc)
        return len(node.items) == len(entries) if isinstance(node, ListNode) else not entries

    def line(self, number: int) -> str:
        """Return line `number` (1-based), empty when there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def plain(node: Node) -> Plain:
    """Return the node as str, list and dict, without places."""
    if isinstance(node, TextNode):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return {name.value: plain(value) for name, value in node.entries}


def place(node: Node, offset: int = 0) -> SourceMark:
    """Return the place in the file of character `offset` of a scalar's value (the node's own place for lists and maps).

    The value and its source are walked side by side: blanks are free (folding changes them), escapes are stepped over.
    """
    if not isinstance(node, TextNode):
        return node.mark
    at = _content_start(node)
    for char in node.value[:offset]:
        if not char.isspace():
            at = _skip_blanks(node, at)
        at += _width(node, at, char)
    if offset < len(node.value) and not node.value[offset].isspace():
        at = _skip_blanks(node, at)
    return advance(node.mark, node.raw, min(at, len(node.raw)))


def advance(mark: SourceMark, text: str, length: int) -> SourceMark:
    """Return the place `length` characters after `mark`, where `text` starts at `mark`."""
    skipped = text[:length]
    breaks = skipped.count("\n")
    column = mark.column + length if not breaks else length - skipped.rfind("\n")
    return SourceMark(mark.line + breaks, column, mark.index + length)


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, MapNode):
        return node.get(str(step))
    if isinstance(node, ListNode) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def _content_start(node: TextNode) -> int:
    if node.style in ("'", '"'):
        return 1
    return node.raw.find("\n") + 1 if node.style in ("|", ">") else 0


def _skip_blanks(node: TextNode, at: int) -> int:
    while at < len(node.raw) and (node.raw[at].isspace() or (node.style == '"' and node.raw.startswith("\\\n", at))):
        at += 1 if node.raw[at].isspace() else 2
    return at


def _width(node: TextNode, at: int, char: str) -> int:
    """Return how many source characters spell `char` at `at`; 0 for an unescaped blank, which _skip_blanks passes over."""
    if node.style == '"' and node.raw.startswith("\\", at):
        return 2 + {"x": 2, "u": 4, "U": 8}.get(node.raw[at + 1 : at + 2], 0)
    if node.style == "'" and node.raw.startswith("''", at):
        return 2
    return 0 if char.isspace() else 1


def texts(node: Node | None) -> Iterator[TextNode]:
    """Yield every scalar at or below `node` that is a value, in file order; nothing for None."""
    match node:
        case TextNode():
            yield node
        case ListNode(items=items):
            for item in items:
                yield from texts(item)
        case MapNode(entries=entries):
            for _, value in entries:
                yield from texts(value)
