"""Reads files as lines: plain, gzip, zstd and standard input. `scan` uses it directly, and FilesSource builds on it.

Bytes are never decoded here, so invalid characters cannot fail, and no part of a line is dropped, however long it is.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from connectors.files.containers import container_source
from connectors.files.opening import BROKEN, PROBE_BYTES, STDIN, damaged, opened, refused, text_runs
from connectors.files.rotation import rotation
from engine.errors import SourceError
from engine.model.records import NO_LABELS, Labels, Progress, RawLine
from engine.ports import Chunk

CHUNK_BYTES = 1 << 20
LINE_BYTES = 16 * 1024 * 1024  # a longer line arrives in pieces of this size, all with its number


def read_path(path: str, labels: Labels = NO_LABELS, stdin: BinaryIO | None = None) -> Iterator[RawLine | Progress]:
    """Yield the lines of one file, then its Progress, as `read_chunks` does for chunks."""
    for item in read_chunks(path, labels, stdin):
        if isinstance(item, Chunk):
            yield from item.lines()
        else:
            yield item


def read_chunks(path: str, labels: Labels = NO_LABELS, stdin: BinaryIO | None = None) -> Iterator[Chunk | Progress]:
    """Yield one file (`-`: standard input) in chunks of about CHUNK_BYTES, then its Progress: caught up, and closed when the
    name is that of a rotated file.

    The ingest time of lines is the file's last change, of standard input the time at which they are read. The label `timezone`
    (IANA name) is the zone of the period in a rotated file's name.

    Raises SourceMissing, SourceDenied or SourceError; for a binary file before anything is yielded, for a damaged compressed
    file after everything readable is.
    """
    source_id = source_name(path)
    changed = _changed(path)
    offset, number = 0, 1
    with opened(path, stdin) as stream:
        for data in _pieces(stream, path):
            for at, text, end in text_runs(offset, data):
                yield Chunk(source_id, at, text, number, changed, labels, end=end)
                number += line_ends(text)
            with suppress(SourceError):
                changed = _changed(path)  # it may be written to while it is read
            offset += len(data)
    period = rotation(path, ZoneInfo(labels.get("timezone", "UTC")))
    yield Progress(source_id, offset, offset, caught_up=True, closed=period.closed, covers_until=period.covers_until)


def line_ends(data: bytes) -> int:
    """Return the number of line ends in `data`."""
    if len(data) < CHUNK_BYTES // 4:
        return data.count(b"\n")
    import numpy as np  # noqa: PLC0415  (five times as fast, but a small file should not wait for the import)

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def same_content(paths: Iterable[str]) -> Mapping[str, str]:
    """Return a mapping from every path whose content equals that of an earlier one to that earlier path.

    The uncompressed contents are compared. Empty files, standard input and files that cannot be read are left out.
    """
    by_head: dict[bytes, list[str]] = {}
    for path in paths:
        if path != STDIN and os.path.isfile(path) and (head := _digest(path, PROBE_BYTES)):  # noqa: PTH113  (raises nothing)
            by_head.setdefault(head, []).append(path)
    repeated: dict[str, str] = {}
    for group in by_head.values():
        first_with: dict[bytes | None, str] = {}
        for path in group if len(group) > 1 else ():
            original = first_with.setdefault(_digest(path), path)
            if original != path:
                repeated[path] = original
    return repeated


def source_name(path: str) -> str:
    """Return the source_id of `path`: the path, or the container of a log that Docker names by an id. `#` is escaped, since it
    separates a container from its file (see model/records)."""
    return "stdin" if path == STDIN else (container_source(path) or path).replace("#", "%23")


def _pieces(stream: io.BufferedReader, path: str) -> Iterator[bytes]:
    """Yield blocks of whole lines, about CHUNK_BYTES each; a line longer than LINE_BYTES is divided into pieces of that size.

    Raises SourceError where the stream is damaged, after everything before that was yielded.
    """
    pending: list[bytes] = []
    size = 0
    try:
        while part := _guarded(stream, path, min(CHUNK_BYTES, LINE_BYTES - size)):
            pending.append(part)
            size += len(part)
            if size >= CHUNK_BYTES:
                data = b"".join(pending)
                end = data.rfind(b"\n") + 1 or (size if size >= LINE_BYTES else 0)
                yield from [data[:end]] if end else []
                pending = [data[end:]]
                size -= end
    except SourceError:
        yield from filter(None, [b"".join(pending)])
        raise
    yield from filter(None, [b"".join(pending)])


def time_of(changed_s: int) -> datetime | None:
    """Return the time of a file's last change, given in seconds since 1970; None when it is outside the calendar."""
    try:
        return datetime.fromtimestamp(changed_s, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _changed(path: str) -> datetime | None:
    if path == STDIN:
        return datetime.now(UTC)
    try:
        return time_of(int(Path(path).stat().st_mtime))
    except OSError as error:
        raise refused(path, error) from error


def _guarded(stream: io.BufferedReader, path: str, most: int) -> bytes:
    """Return the bytes of one read of the stream below; a read that combines several would lose those before damage."""
    try:
        return stream.read1(most)
    except BROKEN as error:
        raise damaged(path, error) from error
    except OSError as error:
        raise refused(path, error) from error


def _digest(path: str, size: int | None = None) -> bytes | None:
    """Return the digest of the first `size` bytes (None: all). None when the file cannot be read or, with `size`, is empty."""
    digest = hashlib.sha256()
    try:
        with opened(path) as stream:
            if size is not None:
                head = stream.read(size)
                return hashlib.sha256(head).digest() if head else None
            while part := stream.read(1 << 20):
                digest.update(part)
    except (SourceError, OSError, *BROKEN):
        return None
    return digest.digest()
