"""Reading files as lines: plain, gzip, zstd and standard input; what `scan` uses, and what FilesSource is built on.

Bytes are never decoded here, so broken characters cannot fail; a line of any length is kept.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, cast
from zoneinfo import ZoneInfo

import zstandard
from msgspec import Struct

from connectors.files.rotation import is_compressed, rotation
from engine.errors import SourceDenied, SourceError, SourceMissing
from engine.model.records import NO_LABELS, Labels, Progress, RawLine
from engine.ports import Chunk

STDIN = "-"
CHUNK_BYTES = 1 << 20
LINE_BYTES = 16 * 1024 * 1024  # a longer line arrives in pieces of this size, all with its number
PROBE_BYTES = 8192
NOT_LOGS = frozenset((".md", ".yml", ".yaml"))  # skipped inside directories, read when named

_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)


class Found(Struct, frozen=True):
    """The files behind what somebody asked for, in order and each once, and a clear error for each part that is not there."""

    files: tuple[str, ...]
    errors: tuple[SourceError, ...] = ()


def find(wanted: Iterable[str]) -> Found:
    """Return the files that `wanted` stands for: paths, globs (`**` too), directories (recursive, sorted), `-`.

    Inside directories hidden files and the suffixes of NOT_LOGS are left out.
    """
    files: dict[str, None] = {}
    errors: list[SourceError] = []
    for name in wanted:
        try:
            files.update(dict.fromkeys(_expand(name)))
        except SourceError as error:
            errors.append(error)
    return Found(tuple(files), tuple(errors))


def read_path(path: str, labels: Labels = NO_LABELS, stdin: BinaryIO | None = None) -> Iterator[RawLine | Progress]:
    """Yield the lines of one file, then its Progress; see `read_chunks`, of which these are the lines."""
    for item in read_chunks(path, labels, stdin):
        if isinstance(item, Chunk):
            yield from item.lines()
        else:
            yield item


def read_chunks(path: str, labels: Labels = NO_LABELS, stdin: BinaryIO | None = None) -> Iterator[Chunk | Progress]:
    """Yield one file (`-`: standard input) in chunks of about CHUNK_BYTES, then its Progress: read to the end, closed when its
    name says so.

    Lines without a stamp are placed at the file's last change (`ingested_at`), those of standard input at when they are read.
    The label `timezone` (IANA name) is the zone of the period in a rotated file's name.

    Raises SourceMissing, SourceDenied, or SourceError: a binary file (nothing is yielded), a damaged compressed file (after
    everything readable was yielded).
    """
    source_id = source_name(path)
    changed = _changed(path)
    offset, number = 0, 1
    with opened(path, stdin) as stream:
        for data in _pieces(stream, path):
            yield Chunk(source_id, offset, data, number, changed, labels)
            with suppress(SourceError):
                changed = _changed(path)  # it may be written to as it is read
            offset += len(data)
            number += line_ends(data)
    said = rotation(path, ZoneInfo(labels.get("timezone", "UTC")))
    yield Progress(source_id, offset, offset, caught_up=True, closed=said.closed, covers_until=said.covers_until)


def line_ends(data: bytes) -> int:
    """Return how many lines end in `data`."""
    if len(data) < CHUNK_BYTES // 4:
        return data.count(b"\n")
    import numpy as np  # noqa: PLC0415  (five times as fast, and nothing a small file should wait for)

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def same_content(paths: Iterable[str]) -> Mapping[str, str]:
    """Return every file that repeats an earlier one of `paths`, with that earlier one; compression makes no difference.

    Empty files, standard input and what cannot be read repeat nothing.
    """
    by_head: dict[bytes, list[str]] = {}
    for path in paths:
        if path != STDIN and Path(path).is_file() and (head := _digest(path, PROBE_BYTES)):
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
    """Return the source_id of `path`; `#` is escaped because it names containers inside a file (see model/records)."""
    return "stdin" if path == STDIN else path.replace("#", "%23")


@contextmanager
def opened(path: str, stdin: BinaryIO | None = None) -> Iterator[io.BufferedReader]:
    """Open a file for reading its uncompressed bytes; refuse a binary one. Raises as `read_path`."""
    try:
        stream = _open(path, stdin)
    except OSError as error:
        raise refused(path, error) from error
    try:
        _refuse_binary(stream, path)
        yield stream
    finally:
        if path != STDIN:
            stream.close()


def _pieces(stream: io.BufferedReader, path: str) -> Iterator[bytes]:
    """Yield whole lines, about CHUNK_BYTES of them; of a line longer than LINE_BYTES so many at a time.

    Raises SourceError where the stream is damaged, after what was read of it.
    """
    held: list[bytes] = []
    size = 0
    try:
        while part := _guarded(stream, path, min(CHUNK_BYTES, LINE_BYTES - size)):
            held.append(part)
            size += len(part)
            if size >= CHUNK_BYTES:
                data = b"".join(held)
                end = data.rfind(b"\n") + 1 or (size if size >= LINE_BYTES else 0)
                yield from [data[:end]] if end else []
                held = [data[end:]]
                size -= end
    except SourceError:
        yield from filter(None, [b"".join(held)])
        raise
    yield from filter(None, [b"".join(held)])


def refused(path: str, error: OSError) -> SourceError:
    """Return the error of this project for an operating system's refusal to read `path`."""
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{path}: there is no such file")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: no permission to read it; run as a user that may, or change its mode")
    return SourceError(f"{path}: cannot be read ({error.strerror or error})")


def _expand(name: str) -> list[str]:
    if name == STDIN:
        return [name]
    if has_magic(name) and not Path(name).exists():
        matched = [path for path in sorted(glob(name, recursive=True)) if not Path(path).is_dir()]  # noqa: PTH207  (as typed)
        if not matched:
            raise SourceMissing(f"{name}: no file matches")
        return matched
    return _files_below(name) if Path(name).is_dir() else [_present(name)]


def _present(name: str) -> str:
    try:
        os.stat(name)  # noqa: PTH116  (a Path would drop a leading ./, and with it the name the user gave)
    except OSError as error:
        raise refused(name, error) from error
    return name


def _files_below(folder: str) -> list[str]:
    found: list[str] = []

    def refuse(error: OSError) -> None:
        raise refused(str(error.filename), error)

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [str(Path(parent, name)) for name in sorted(names) if _is_log(name)]
    if not found:
        raise SourceMissing(f"{folder}: holds no log files")
    return found


def _is_log(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix not in NOT_LOGS


def time_of(changed_s: int) -> datetime | None:
    """Return the time of a file's last change in seconds since 1970; None for what a file system says and no calendar holds."""
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


def _open(path: str, stdin: BinaryIO | None) -> io.BufferedReader:
    if path == STDIN:
        return cast(io.BufferedReader, stdin or sys.stdin.buffer)
    if path.endswith(".gz"):
        return cast(io.BufferedReader, gzip.open(path))  # buffers itself; a second buffer would lose what precedes damage
    plain = Path(path).open("rb")  # noqa: SIM115  (`opened` closes it)
    if not is_compressed(path):
        return plain
    frames = zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True)
    return io.BufferedReader(cast(io.RawIOBase, frames))


def _refuse_binary(stream: io.BufferedReader, path: str) -> None:
    try:
        head = stream.peek(PROBE_BYTES)[:PROBE_BYTES]
    except _BROKEN as error:
        raise _damaged(path, error) from error
    except OSError as error:
        raise refused(path, error) from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{path}: is UTF-16 text; convert it with: iconv -f UTF-16 -t UTF-8")
    if b"\0" in head:
        raise SourceError(f"{path}: is not text (it holds NUL bytes)")


def _guarded(stream: io.BufferedReader, path: str, most: int) -> bytes:
    """Return what can be read at once; a longer read would lose what precedes damage."""
    try:
        return stream.read1(most)
    except _BROKEN as error:
        raise _damaged(path, error) from error
    except OSError as error:
        raise refused(path, error) from error


def _damaged(path: str, error: Exception) -> SourceError:
    return SourceError(f"{path}: the compressed data is damaged or ends early ({error})")


def _digest(path: str, size: int | None = None) -> bytes | None:
    """Return the hash of the first `size` bytes (None: all), or None for a file that is empty or cannot be read."""
    digest = hashlib.sha256()
    try:
        with opened(path) as stream:
            if size is not None:
                head = stream.read(size)
                return hashlib.sha256(head).digest() if head else None
            while part := stream.read(1 << 20):
                digest.update(part)
    except (SourceError, OSError, *_BROKEN):
        return None
    return digest.digest()
