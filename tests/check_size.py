"""The size budget: no file over 400 lines of code, no function over 60. Prints every breach and ends with 1 when there is one.

A line of code is neither blank nor a comment; a function's docstring does not count for the function.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "connectors", "tests")
FILE_LIMIT, FUNCTION_LIMIT = 400, 60

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Return every Python file of the project, sorted."""
    return sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py"))


def code_lines(source: str) -> int:
    """Return how many lines of `source` are neither blank nor a comment."""
    return sum(1 for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, line, length) of every function of `source`; the docstring does not count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node)


def breaches(path: Path, source: str, found: Iterable[tuple[str, int, int]]) -> Iterator[str]:
    """Yield a sentence for everything in `path`, with these functions, that is over the budget."""
    name = path.relative_to(ROOT)
    if (lines := code_lines(source)) > FILE_LIMIT:
        yield f"{name}: {lines} lines of code, at most {FILE_LIMIT}"
    for function, line, length in found:
        if length > FUNCTION_LIMIT:
            yield f"{name}:{line}: {function} has {length} lines, at most {FUNCTION_LIMIT}"


def _docstring_lines(node: Function) -> int:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def main() -> int:
    """Check every file and print the breaches, or one line of figures."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources()}
    measured = {path: list(functions(text)) for path, text in texts.items()}
    found = [sentence for path, text in texts.items() for sentence in breaches(path, text, measured[path])]
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    lengths = [length for each in measured.values() for _, _, length in each]
    print(f"size: {len(texts)} files, {len(lengths)} functions, median {median(lengths):g} lines, longest {max(lengths)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
