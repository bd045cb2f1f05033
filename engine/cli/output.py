"""The two shapes of an answer: text to read, and JSON; and how text counts things."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import typer


class OutputFormat(str, Enum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="Text to read, or JSON.")]


def print_json(value: Any) -> None:
    """Print a JSON value for people and programs: indented, in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def count(number: int, noun: str) -> str:
    """Return `1 file`, `1,200 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
