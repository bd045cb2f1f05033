"""The journal of systemd as a source, read with the program journalctl. Imports the model, errors, ports and codec only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.journald.source import JournaldSource

__all__ = ["JournaldSource", "check_label", "open_source"]


def open_source(settings: Mapping[str, Any]) -> JournaldSource:
    """Return the source for `settings`: the fields of JournaldSource, as JSON. Spark's workers call this too."""
    return JournaldSource(**settings)


def check_label(template: str) -> str | None:
    """Return an error text for the label `template`; None when it is valid."""
    if "{" in template:
        return "a label of a journal is fixed text; `host`, `unit`, `container` and `image` come from its entries"
    return None
