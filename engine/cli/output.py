"""The output formats of commands: text and JSON; and counts in text."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import typer


class OutputFormat(str, Enum):
    """The format that a command prints its result in."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="Text to read, or JSON.")]


def print_json(value: Any) -> None:
    """Print a JSON value, indented and in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as `1 file` or `1,200 files`; without a `plural` it is formed with `s`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
