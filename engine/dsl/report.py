"""Collect the findings about one file: every part of the compiler reports and goes on, so that all findings come at once."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from engine.dsl.codes import Code
from engine.dsl.document import Node, RuleDocument, SourceMark, TextNode, place
from engine.model.diagnostics import Diagnostic, Level


class Report:
    """The findings about one document. Adding one never raises."""

    def __init__(self, document: RuleDocument, findings: Iterable[Diagnostic] = ()) -> None:
        self.document = document
        self._findings = list(findings)

    def add(self, code: Code, at: Node | SourceMark, message: str, help: str = "", offset: int = 0, length: int = 0) -> None:
        """Record a finding.

        Args:
            at: the node or the place of the finding; for a scalar, `offset` counts characters of its value.
            message: what is wrong, in plain words, lower case, without a final period.
            help: what to do about it.
            length: how many characters the caret underlines; 0: the rest of the word or the whole plain scalar.
        """
        mark = at if isinstance(at, SourceMark) else place(at, offset) if offset else at.mark
        if not length:
            length = len(at.raw) if isinstance(at, TextNode) and not offset and at.style not in ("|", ">") else 1
        self._findings.append(self._diagnostic(code, mark, message, help, length))

    def all(self) -> tuple[Diagnostic, ...]:
        """Return the findings by place in the file, each once."""
        return tuple(sorted(dict.fromkeys(self._findings), key=lambda d: (d.line, d.column, d.code, d.message)))

    def _diagnostic(self, code: Code, mark: SourceMark, message: str, help: str, length: int) -> Diagnostic:
        line = self.document.line(mark.line)
        level = Level.WARNING if code.is_warning else Level.ERROR
        length = max(1, min(length, len(line) - mark.column + 1))
        return Diagnostic(code.id, level, self.document.path, mark.line, mark.column, message, help, line, length)


def did_you_mean(word: str, choices: Iterable[str], valid: str = "") -> str:
    """Return a help line for the unknown `word`: the nearest of `choices`, then `valid` or, if empty, the list of choices."""
    ordered = sorted(set(choices))
    near = get_close_matches(word, ordered, n=1, cutoff=0.6)
    valid_words = valid or (f"known: {', '.join(ordered[:40])}" if ordered else "")
    return "; ".join(part for part in (f"did you mean `{near[0]}`?" if near else "", valid_words) if part)
