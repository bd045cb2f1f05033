"""The keyed state on Spark: one scope's streams and correlation as a map of named parts, read and written part by part.

What is done with them is engine/spark/scope.py, which knows no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import MapState

from engine.errors import TocsinError
from engine.spark.rows import received, sent
from engine.spark.scope import ScopeState
from engine.spark.slices import stages_of


class ScopeProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs in Spark's Python workers, once for each scope and batch.

    Args:
        plan_file: the plan, as `stages_of` reads it.
        bounded: the input ends when it is read to its end, so that what is open then is final.
    """

    def __init__(self, plan_file: str, bounded: bool) -> None:
        self._plan_file, self._bounded = plan_file, bounded

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._parts = handle.getMapState("parts", "name string", "body string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yield what the scope of `key` has to say of the rows of one batch. Spark passes the arguments by these names.

        Raises TocsinError for state that another version wrote.
        """
        items = [received(each.kind, each.body) for each in rows]
        try:
            found = ScopeState(stages_of(self._plan_file), key[0], _Parts(self._parts), self._bounded).take(items)
        except msgspec.DecodeError as error:
            raise TocsinError(self._unreadable(key[0], error)) from None
        for said in found:
            scope, kind, body = sent(key[0], said)
            yield Row(scope=scope, kind=kind, body=body)

    def _unreadable(self, scope: str, error: Exception) -> str:
        checkpoint = Path(self._plan_file).parent
        why = (
            f"the state of {scope} in the checkpoint {checkpoint} cannot be read: another version of tocsin wrote it ({error})"
        )
        return f"{why}; remove that folder and start again: sources are read anew from where `start` says"

    def close(self) -> None:
        """Do nothing: the state is Spark's."""


class _Parts(MutableMapping[str, str]):
    """Spark's map state as a mapping; parts that are not asked for are not read."""

    def __init__(self, parts: MapState) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> str:
        found = _reached(self._parts.getValue, (name,))
        if found is None:
            raise KeyError(name)
        body: str = found[0]
        return body

    def __setitem__(self, name: str, body: str) -> None:
        _reached(self._parts.updateValue, (name,), (body,))

    def __delitem__(self, name: str) -> None:
        _reached(self._parts.removeKey, (name,))

    def __iter__(self) -> Iterator[str]:
        yield from (name for ((name,), _) in self._parts.iterator())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _reached(ask: Callable[..., Any], *args: object) -> Any:
    """Return the answer of Spark's state. Raises TocsinError when it cannot be reached: that is no fault of any line."""
    try:
        return ask(*args)
    except Exception as error:
        raise TocsinError(f"Spark's state cannot be reached: {type(error).__name__}: {error}") from error
