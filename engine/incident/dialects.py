"""The settings of a fix as the speaker writes them: the dialect of the lines that prove an incident decides the spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import re2
from msgspec.structs import replace

from engine.model.dialects import VALUE, Dialect
from engine.model.incidents import RenderedStep
from engine.model.records import Labels


def spelled(
    steps: Iterable[RenderedStep], texts: Sequence[str], labels: Labels, dialects: Sequence[Dialect]
) -> tuple[RenderedStep, ...]:
    """Return the steps with their settings spelled as the speaker of `texts` writes them; unchanged where no dialect, or more
    than one, is certain.

    Args:
        texts: the events that prove the incident; events of no dialect do not count.
        labels: the labels of the incident.
        dialects: in order of rank.
    """
    if not dialects:
        return tuple(steps)
    return tuple(_spelled(step, _speaker(step.where, texts, labels, dialects)) if step.set else step for step in steps)


def _speaker(where: str, texts: Sequence[str], labels: Labels, dialects: Sequence[Dialect]) -> Dialect | None:
    """Return the one dialect with settings of the level `where` that the events are of; None without one, or with several."""
    candidates = [dialect for dialect in dialects if where in dialect.levels]
    speakers = {dialect.name: dialect for text in texts if (dialect := _dialect_of(text, labels, candidates)) is not None}
    return next(iter(speakers.values())) if len(speakers) == 1 else None


def _dialect_of(text: str, labels: Labels, dialects: Iterable[Dialect]) -> Dialect | None:
    return next((dialect for dialect in dialects if _speaks(dialect, text, labels)), None)


def _speaks(dialect: Dialect, text: str, labels: Labels) -> bool:
    return any(_matches(line, text) for line in dialect.lines) or any(
        name in labels and _matches(expression, labels[name]) for name, expression in dialect.labels.items()
    )


def _matches(expression: str, text: str) -> bool:
    return _compiled(expression).search(text) is not None


@lru_cache(maxsize=1000)
def _compiled(expression: str) -> re2._Regexp[str]:
    return re2.compile(expression)


def _spelled(step: RenderedStep, dialect: Dialect | None) -> RenderedStep:
    if dialect is None:
        return step
    spellings: Mapping[str, str] = dialect.spellings.get(step.where, {})
    absent: Mapping[str, str] = dialect.absent.get(step.where, {})
    remarks = [f"spelled for {dialect.label}"] if any(name in spellings for name in step.set) else []
    remarks += [f"{dialect.label} has no {name}: {absent[name]}" for name in step.set if name in absent]
    if not remarks:
        return step
    settings = dict(_assigned(spellings.get(name, name), value) for name, value in step.set.items() if name not in absent)
    where = dialect.where if step.where == "client" and dialect.where else step.where
    return replace(step, do=f"{step.do} ({'; '.join(remarks)})", where=where, set=settings)


def _assigned(spelling: str, value: str) -> tuple[str, str]:
    """Return the name and the value of a setting in a spelling."""
    name, assigns, written = spelling.partition("=")
    return name, written.replace(VALUE, value) if assigns else value
