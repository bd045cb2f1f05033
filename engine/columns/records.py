"""records: lines with their wrappers off, source by source; what no column takes off, the parser does line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.lines import Flags, Integers, Lines, strings
from engine.columns.stamps import NO_TIME
from engine.model.records import Labels, Record


class Rows(Struct, frozen=True, dict=True):
    """Lines without wrappers, all of one source together and in order.

    `data` holds the text of each with a line end behind it, row i from `starts[i]` on. `line` is which line of `lines` it is,
    `source` and `labelled` whose it is and which labels it bears, `at_us` the stamp of its wrapper. An `odd` row may be anything
    but a line of its program. `record` returns what the parser makes of a row.
    """

    lines: Lines
    data: bytes
    starts: Integers
    line: Integers
    source: Integers
    sources: Sequence[str]
    labelled: Integers
    labels: Sequence[Labels]
    at_us: Integers
    odd: Flags
    record: Callable[[int], Record]

    def __len__(self) -> int:
        return len(self.line)

    @cached_property
    def texts(self) -> pa.StringArray:
        """The text of each row, without its line end."""
        return pc.ascii_rtrim(strings(self.data, self.starts), "\n")


def plain_rows(lines: Lines, record: Callable[[int], Record]) -> Rows:
    """Return lines that bear no wrapper."""
    nothing = np.zeros(len(lines), np.int64)
    return Rows(
        lines=lines,
        data=lines.data,
        starts=lines.starts,
        line=np.arange(len(lines)),
        source=nothing,
        sources=[lines.chunks[0].source_id],
        labelled=nothing,
        labels=[lines.chunks[0].labels],
        at_us=np.full(len(lines), NO_TIME),
        odd=np.zeros(len(lines), np.bool_),
        record=record,
    )
