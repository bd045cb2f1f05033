"""Host the state of each scope in Spark: a map of named parts that are read and written one by one.

The work on the state is in engine/spark/scope.py, which does not know Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import MapState

from engine.errors import TocsinError
from engine.spark.checkpoints import SharedMark
from engine.spark.rows import received, sent
from engine.spark.scope import ScopeState
from engine.spark.slices import stages_of


class ScopeProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs in Spark's Python workers, once for each scope and batch.

    Args:
        plan_file: the plan, as `stages_of` reads it.
        bounded: the input has an end: events that are open there are complete.
        checkpoint: where the state is, for an error.
        mark: a file in the checkpoint that this process must see; None where the state is on no disk of this machine, or the
            driver is on this machine too.
    """

    def __init__(self, plan_file: str, bounded: bool, checkpoint: str, mark: SharedMark | None = None) -> None:
        self._plan_file, self._bounded, self._checkpoint, self._mark = plan_file, bounded, checkpoint, mark

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. Raises TocsinError on a machine that does not share the checkpoint."""
        if self._mark is not None:
            self._mark.check()
        self._parts = handle.getMapState("parts", "name string", "body string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yield the findings of the scope `key` in the rows of one batch. Spark passes the arguments by these names.

        Raises TocsinError for state that another version wrote.
        """
        items = [received(row.kind, row.body) for row in rows]
        try:
            items_out = ScopeState(stages_of(self._plan_file), key[0], _Parts(self._parts), self._bounded).take(items)
        except msgspec.DecodeError as error:
            raise TocsinError(self._unreadable(key[0], error)) from None
        for item in items_out:
            scope, kind, body = sent(key[0], item)
            yield Row(scope=scope, kind=kind, body=body)

    def _unreadable(self, scope: str, error: Exception) -> str:
        why = (
            f"the state of {scope} in the checkpoint {self._checkpoint} cannot be read: another version of tocsin wrote it"
            f" ({error})"
        )
        return f"{why}; remove that folder and start again: sources are read anew from where `start` says"

    def close(self) -> None:
        """Do nothing: Spark owns the state."""


class _Parts(MutableMapping[str, str]):
    """Spark's map state as a mapping that reads a part only when it is asked for."""

    def __init__(self, parts: MapState) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> str:
        value = _state_call(self._parts.getValue, (name,))
        if value is None:
            raise KeyError(name)
        body: str = value[0]
        return body

    def __setitem__(self, name: str, body: str) -> None:
        _state_call(self._parts.updateValue, (name,), (body,))

    def __delitem__(self, name: str) -> None:
        _state_call(self._parts.removeKey, (name,))

    def __iter__(self) -> Iterator[str]:
        yield from (name for ((name,), _) in self._parts.iterator())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _state_call(call: Callable[..., Any], *args: object) -> Any:
    """Return the result of a call to Spark's state. Raises TocsinError when the call fails, since no line is to blame."""
    try:
        return call(*args)
    except Exception as error:
        raise TocsinError(f"Spark's state cannot be reached: {type(error).__name__}: {error}") from error
