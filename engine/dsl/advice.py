"""What `rules lint` advises beyond errors: untested rules, patterns too close to their sample, undeclared changes of state."""

from __future__ import annotations

from engine.dsl.pack import Pack
from engine.model.diagnostics import Diagnostic


def advise(pack: Pack) -> list[Diagnostic]:
    """Return every finding of `pack`, warnings included, by file and place."""
    return sorted(pack.diagnostics, key=lambda found: (found.path, found.line, found.column, found.code))
