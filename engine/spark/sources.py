"""Describe a source so that any process can open it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from engine.ports import Source


class SourceSpec(Struct, frozen=True):
    """A source of the job that any process can open (see ports.Source).

    Attributes:
        name: the key of its offset in the checkpoint: unique among the sources and the same in every run.
        opener: the function that opens it, as `module:function`.
        settings: the argument of the opener, as JSON.
        scope: the scope that its lines are correlated in.
        is_local: it can be read on the machine of the driver only.
    """

    name: str
    opener: str
    settings: Mapping[str, Any]
    scope: str
    is_local: bool = False

    def open(self) -> Source:
        """Open the source."""
        module, _, function = self.opener.partition(":")
        source: Source = getattr(import_module(module), function)(self.settings)
        return source
