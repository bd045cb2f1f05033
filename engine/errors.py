"""Every exception tocsin raises on purpose.

    TocsinError                 something the caller can act on; str() is the sentence to print
    |-- RulesError              rules that do not load; carries every Diagnostic, not only the first
    |-- ConfigError             tocsin.yml is wrong; carries every Diagnostic
    |-- UsageError              the command line asks for something that cannot be (exit 2)
    |   `-- UnknownIncident     an id that no incident has, or the beginning of several
    |-- SourceError             an input cannot be read
    |   |-- SourceMissing       it is not there
    |   |-- SourceDenied        no permission
    |   |-- SourceAway          it cannot be read now, but may be soon
    |   |   `-- NoAnswer        a server that is asked about its state does not answer
    |   |-- LateInput           lines came so late that later ones may be missed
    |   `-- DataLoss            lines between two offsets are gone; carries the gap
    |-- StoreError              the incident store cannot be read or written
    |   |-- StoreAway           it cannot be used now, but may be soon
    |   |-- StoreLost           its file was removed or replaced while it was in use
    |   `-- LeaseLost           another process has taken over the work of this one
    |-- FenceError              checkpoint and incident store do not belong together, or another job uses them
    |-- ListenError             the pages cannot be served on an address
    `-- RuntimeMissing          Java, a package or a server that this command needs is absent; says what to install

Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.model.diagnostics import Diagnostic


class TocsinError(Exception):
    """A failure with a sentence for its reader: what, where, why, what next."""


class DiagnosticsError(TocsinError):
    """Base of the errors that carry a list of diagnostics, in file order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.one_line() for d in self.diagnostics))


class RulesError(DiagnosticsError):
    """Rules that do not load."""


class ConfigError(DiagnosticsError):
    """A configuration file that does not load."""


class UsageError(TocsinError):
    """The command line asks for something that cannot be done."""


class UnknownIncident(UsageError):
    """There is no incident of that id, or several ids begin with it."""


class SourceError(TocsinError):
    """An input that cannot be read."""


class SourceMissing(SourceError):
    """An input that is not there."""


class SourceDenied(SourceError):
    """An input that may not be read."""


class SourceAway(SourceError):
    """`what` (an address, a topic) cannot be read now, but may be soon."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        super().__init__(why)


class NoAnswer(SourceAway):
    """`what`, the address of a server that is asked about its state, does not answer. No log is behind it."""


class DataLoss(SourceError):
    """Lines of `source_id` in [`lost_from`, `lost_to`) were gone before they were read."""

    def __init__(self, source_id: str, lost_from: int, lost_to: int, why: str) -> None:
        self.source_id, self.lost_from, self.lost_to, self.why = source_id, lost_from, lost_to, why
        super().__init__(f"{source_id}: offsets {lost_from} to {lost_to} are gone ({why})")


class LateInput(SourceError):
    """`lines` of `source_id` came up to `late_s` seconds late, and what comes later than `overlap_s` is missed."""

    def __init__(self, source_id: str, lines: int, late_s: float, overlap_s: float) -> None:
        super().__init__(
            f"{lines} lines of '{source_id}' came up to {late_s:.0f} s late; those later than {overlap_s:.0f} s are missed"
        )
        self.source_id, self.lines = source_id, lines


class StoreError(TocsinError):
    """The incident store cannot be read or written."""


class StoreAway(StoreError):
    """The incident store cannot be used now, but may be soon; `locked`: because another process is writing."""

    def __init__(self, sentence: str, *, locked: bool = False) -> None:
        self.locked = locked
        super().__init__(sentence)


class StoreLost(StoreError):
    """The file of the incident store was removed or replaced while it was in use."""


class LeaseLost(StoreError):
    """Another process has taken over the work of this one, which was stopped or cut off for too long."""


class FenceError(TocsinError):
    """A checkpoint and an incident store that do not belong together, are gone, or are in use by another job."""


class ListenError(TocsinError):
    """The pages cannot be served on an address; `in_use`: because another program listens there."""

    def __init__(self, sentence: str, *, in_use: bool = False) -> None:
        self.in_use = in_use
        super().__init__(sentence)


class ReaderBusy(TocsinError):
    """The lines around another line of evidence are being read; the same question can be asked again in a moment."""


class RuntimeMissing(TocsinError):
    """A run-time requirement of this command is absent; the message says what to install."""
