"""Check sources: that they can be reached, and that there is something to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from engine.cli.checking.outcomes import CheckedItem, CheckOutcome
from engine.cli.inputs import RunSurroundings, SourceInput, open_input
from engine.cli.output import count
from engine.cli.resuming import ConfiguredSource, resumed
from engine.config import Settings, SourceSettings
from engine.errors import SourceMissing, TocsinError

AT_ONCE = 8
SHOWN = 20  # files, topics or indices of a source that are listed


def checked_sources(settings: Settings, once: bool, around: RunSurroundings) -> Iterator[CheckedItem]:
    """Yield the outcome for every source, in their order, and what earlier runs mean for them. They are asked side by side.

    Args:
        once: the input is bounded (see open_input).
    """
    with ThreadPoolExecutor(AT_ONCE, "source-check") as pool:
        opened = list(pool.map(lambda source: _opened(source, once, around), settings.sources))
    configured: list[ConfiguredSource] = []
    for source, input in zip(settings.sources, opened, strict=True):
        name = f"{source.type} of cluster {source.scope}"
        if isinstance(input, TocsinError):
            yield CheckedItem("source", name, CheckOutcome.FAILED, str(input))
            continue
        yield from _items(name, input)
        configured += [ConfiguredSource(spec.name, source.start is not None) for spec in input.specs]
    for sentence in resumed(configured, around.offsets):
        yield CheckedItem("source", "earlier runs", CheckOutcome.OK, sentence)


def _opened(source: SourceSettings, once: bool, around: RunSurroundings) -> SourceInput | TocsinError:
    try:
        return open_input(source, once, around)
    except TocsinError as error:
        return error


def _items(name: str, input: SourceInput) -> Iterator[CheckedItem]:
    is_partial = len(input.contents) > len(input.absent)  # something can be read, or could be if there were lines
    if is_partial or not input.errors:
        details = (*_first(input.contents), *input.reading)
        yield CheckedItem("source", name, CheckOutcome.OK if is_partial else CheckOutcome.FAILED, input.summary, details)
    for pattern in input.absent:
        yield CheckedItem(
            "source", name, CheckOutcome.WARNING if is_partial else CheckOutcome.FAILED, f"no index is called {pattern}"
        )
    for error in {str(error): error for error in input.errors}.values():
        is_missing = isinstance(error, SourceMissing)
        yield CheckedItem(
            "source", name, CheckOutcome.WARNING if is_missing and is_partial else CheckOutcome.FAILED, str(error)
        )


def _first(contents: Sequence[str]) -> Sequence[str]:
    rest = len(contents) - SHOWN
    return contents if rest <= 0 else (*contents[:SHOWN], f"and {count(rest, 'more', 'more')}")
