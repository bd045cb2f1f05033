"""Writing to the terminal: rich for styles, Python's own stdout for the bytes, so that a reader who left is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

WIDEST = 110  # columns; longer lines of prose are hard to read


def show(render: Callable[[int], Text]) -> None:
    """Print what `render(width)` returns. Styles are left out when stdout is no terminal or NO_COLOR is set."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    page = render(min(console.width, WIDEST))
    with console.capture() as captured:
        console.print(page, soft_wrap=True, end="")
    sys.stdout.write(captured.get())
