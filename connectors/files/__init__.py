"""Files as a source: plain, growing, rotated, gzip, zstd. Pure Python; imports the model, errors, ports and codec only."""

from collections.abc import Mapping
from typing import Any

from connectors.files.labels import LabelError, check_label
from connectors.files.reading import STDIN, Found, find, read_chunks, read_path, same_content
from connectors.files.source import FilesSource

__all__ = [
    "STDIN",
    "FilesSource",
    "Found",
    "LabelError",
    "check_label",
    "find",
    "open_source",
    "read_chunks",
    "read_path",
    "same_content",
]


def open_source(settings: Mapping[str, Any]) -> FilesSource:
    """Return the source that `settings` (JSON: paths, labels, start, final) describe; called in Spark's workers too."""
    return FilesSource(**settings)
