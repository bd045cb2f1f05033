"""Write to the terminal: rich renders the styles, sys.stdout writes the bytes, so that a closed pipe is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

MAX_WIDTH = 110  # columns; longer lines of prose are hard to read


def show(render: Callable[[int], Text]) -> None:
    """Print the text that `render(width)` returns, without styles when stdout is no terminal or NO_COLOR is set."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    page = render(min(console.width, MAX_WIDTH))
    with console.capture() as captured:
        console.print(page, soft_wrap=True, end="")
    sys.stdout.write(captured.get())
