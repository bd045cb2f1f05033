"""A finding about a file: stable code, place, plain sentence, help, in the style of ruff and rustc."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Level(str, Enum):
    """How bad a finding is: an error stops loading, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Diagnostic(Struct, frozen=True):
    """One finding at one place of one file.

    `line` and `column` are 1-based and count characters; 0 means the whole file. `source_line` is the text of that line,
    `length` the number of characters the caret underlines. `message` is lower case and has no final period.
    """

    code: str
    level: Level
    path: str
    line: int
    column: int
    message: str
    help: str = ""
    source_line: str = ""
    length: int = 1

    def one_line(self) -> str:
        """Render as `path:line:column: level[code]: message`."""
        return f"{self.path}:{self.line}:{self.column}: {self.level.value}[{self.code}]: {self.message}"

    def render(self) -> str:
        """Render over several lines, with the source line and a caret under the place."""
        head = f"{self.level.value}[{self.code}]: {self.message}\n  --> {self.path}:{self.line}:{self.column}"
        if self.source_line:
            gutter = str(self.line)
            pad = " " * len(gutter)
            caret = " " * max(0, self.column - 1) + "^" * max(1, self.length)
            head += f"\n{pad} |\n{gutter} | {self.source_line}\n{pad} | {caret}"
        return head + (f"\n  = help: {self.help}" if self.help else "")
