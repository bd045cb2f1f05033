"""Files as a source: plain, growing, rotated, compressed with gzip or zstd. Pure Python; imports the model, errors, ports and
codec only."""

from collections.abc import Mapping
from typing import Any

from connectors.files.containers import POD_LOGS, container_labels, docker_roots
from connectors.files.finding import FileListing, find
from connectors.files.labels import LabelError, check_label
from connectors.files.opening import STDIN
from connectors.files.reading import read_chunks, read_path, same_content
from connectors.files.source import FilesSource
from connectors.files.unpacking import StagedFile, Unpacking

__all__ = [
    "POD_LOGS",
    "STDIN",
    "FileListing",
    "FilesSource",
    "LabelError",
    "StagedFile",
    "Unpacking",
    "check_label",
    "container_labels",
    "docker_roots",
    "find",
    "open_source",
    "read_chunks",
    "read_path",
    "same_content",
]


def open_source(settings: Mapping[str, Any]) -> FilesSource:
    """Return the source for `settings`: the fields of FilesSource, as JSON. Spark's workers call this too."""
    return FilesSource(**settings)
