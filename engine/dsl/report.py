"""Collect the findings about one file: every piece of the compiler reports here and goes on, so all come out at once."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from engine.dsl.codes import Code
from engine.dsl.document import Node, RuleDocument, SourceMark, TextNode, place
from engine.model.diagnostics import Diagnostic, Level


class Report:
    """The findings about one document, in the order they were made. Adding one never raises."""

    def __init__(self, document: RuleDocument, found: Iterable[Diagnostic] = ()) -> None:
        self.document = document
        self._found = list(found)

    def add(self, code: Code, at: Node | SourceMark, message: str, help: str = "", offset: int = 0, length: int = 0) -> None:
        """Record a finding.

        Args:
            at: the node it is about, or a place; for a scalar, `offset` counts characters of its value.
            message: plain words, lower case, no final period.
            help: what to do about it.
            length: how many characters the caret underlines; 0: the rest of the word or the whole plain scalar.
        """
        mark = at if isinstance(at, SourceMark) else place(at, offset) if offset else at.mark
        if not length:
            length = len(at.raw) if isinstance(at, TextNode) and not offset and at.style not in ("|", ">") else 1
        self._found.append(self._diagnostic(code, mark, message, help, length))

    def all(self) -> tuple[Diagnostic, ...]:
        """Return what was found, by place in the file; equal findings once."""
        return tuple(sorted(dict.fromkeys(self._found), key=lambda d: (d.line, d.column, d.code, d.message)))

    def _diagnostic(self, code: Code, mark: SourceMark, message: str, help: str, length: int) -> Diagnostic:
        line = self.document.line(mark.line)
        level = Level.WARNING if code.is_warning else Level.ERROR
        length = max(1, min(length, len(line) - mark.column + 1))
        return Diagnostic(code.id, level, self.document.path, mark.line, mark.column, message, help, line, length)


def did_you_mean(word: str, known: Iterable[str], valid: str = "") -> str:
    """Return a help line for an unknown `word`: the nearest known one, then `valid` or the list of known words."""
    choices = sorted(set(known))
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    listed = valid or (f"known: {', '.join(choices[:40])}" if choices else "")
    return "; ".join(part for part in (f"did you mean `{near[0]}`?" if near else "", listed) if part)
