"""Labels of a record: fixed text, parts of its topic, key, host and file, or any field of a shipper's JSON document."""

from __future__ import annotations

from engine.labelling import wrong_label

NAMES = ("topic", "key", "host", "file", "field")


def check_label(template: str) -> str | None:
    """Return an error text for `template`; None when it is valid."""
    return wrong_label(template, NAMES)
