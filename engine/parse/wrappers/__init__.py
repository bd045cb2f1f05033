"""The wrappers that shippers and viewers put around a log line: one module a wrapper, loaded by scanning this folder.

Pure, one record at a time. A wrapper module has:

    FIRST: str                      the characters that a wrapped line can begin with
    ORDER: int                      of the wrappers that can begin with the same character, the lowest is tried first
    unwrap(record) -> Record | None the record without this wrapper; None when the record does not have it
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from engine.model.records import Record

Unwrap = Callable[[Record], Record | None]


@cache
def by_first_character() -> Mapping[str, tuple[Unwrap, ...]]:
    """Return, for every first character, the wrappers that can begin with it, in the order in which they are tried."""
    modules = [import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    modules.sort(key=lambda module: (module.ORDER, module.__name__))
    characters = {character for module in modules for character in module.FIRST}
    return {c: tuple(module.unwrap for module in modules if c in module.FIRST) for c in characters}
