"""Labels of a document: fixed text, or parts of its index, host and file, or any of its fields (engine/labelling)."""

from __future__ import annotations

from engine.labelling import wrong_label

NAMES = ("index", "host", "file", "field")


def check_label(template: str) -> str | None:
    """Return an error text for `template`; None when it is valid."""
    return wrong_label(template, NAMES)
