"""Naming a source so that it can be opened in any process."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from engine.ports import Source


class SourceSpec(Struct, frozen=True):
    """A source for the job. `opener` (`module:function`) makes it of `settings` (JSON) in any process; see ports.Source.

    `name` keeps its offset from run to run, so it must stay the same and differ from the others'. `scope` is what its lines are
    correlated in.
    """

    name: str
    opener: str
    settings: Mapping[str, Any]
    scope: str

    def open(self) -> Source:
        """Return the source."""
        module, _, function = self.opener.partition(":")
        made: Source = getattr(import_module(module), function)(self.settings)
        return made
