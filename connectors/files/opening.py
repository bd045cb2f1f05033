"""Opens files for reading their uncompressed bytes: plain, gzip, zstd, standard input. Refuses files that are no logs.

Nothing here waits for a writer: a pipe or device is opened only when the caller allows it.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from connectors.files.access import missing_right
from connectors.files.rotation import is_compressed
from engine.errors import SourceDenied, SourceError, SourceMissing

STDIN = "-"
PROBE_BYTES = 8192
BLOCK_BYTES = 1 << 20
# the share of control characters in a binary file; of random bytes they are 26 in 256, and in 8 KiB never less than this
BINARY_FROM = 1 / 12

BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)
_CONTROLS = bytes(sorted({*range(32), 127} - {*b"\b\t\n\v\f\r\x1b"}))
_NULS = re.compile(rb"(?m:^)\0+")
_PACKED = (
    b"BZh91AY&SY",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"7z\xbc\xaf\x27\x1c",
)
RUNS = 64  # every run of NULs divides a block once more; without a bound a block of short runs would give a million pieces
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


@contextmanager
def opened(path: str, stdin: BinaryIO | None = None, regular: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file for reading its uncompressed bytes.

    Raises SourceMissing, SourceDenied or SourceError; also for a binary file and, if `regular`, for one that is not regular.
    """
    with content(path, stdin, regular) as stream:
        _refuse_binary(stream, path)
        yield stream


@contextmanager
def content(path: str, stdin: BinaryIO | None = None, regular: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file as `opened` does, but accept a binary one."""
    if path == STDIN:
        yield cast(io.BufferedReader, stdin or sys.stdin.buffer)
        return
    try:
        plain = _plain(path, regular)
    except OSError as error:
        raise refused(path, error) from error
    with plain, _unpacked(plain, path) as stream:
        yield stream


def refused(path: str, error: OSError) -> SourceError:
    """Return the SourceError for an operating system's error on reading `path`: SourceMissing, SourceDenied or another."""
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{path}: there is no such file")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: no permission to read it; {missing_right(path)}")
    return SourceError(f"{path}: cannot be read ({error.strerror or error})")


def irregular(path: str, mode: int) -> SourceError:
    """Return the error for a path that is not a regular file."""
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    how = "; a pipe can be read by: tocsin scan PATH" if stat.S_ISFIFO(mode) else ""
    return SourceError(f"{path}: is {kind}, and only regular files are read{how}")


def damaged(path: str, error: Exception) -> SourceError:
    """Return the error for a compressed file with damaged data."""
    return SourceError(f"{path}: the compressed data is damaged or ends early ({error})")


def is_binary(head: bytes) -> bool:
    """Return whether a file that begins with `head` is binary, so no log.

    A log may contain NULs: at its start, where a writer went on behind the place at which the file was cut; before a line,
    after a crash; within a message. A file is binary if it contains NULs and, apart from those before lines, is empty or has at
    least one control character in 12 bytes (BINARY_FROM).
    """
    if b"\0" not in head:
        return False
    text = _NULS.sub(b"", head)
    return _controls(text) >= BINARY_FROM * len(text)


def text_start(stream: io.BufferedReader, plain: bool) -> int | None:
    """Return the number of NULs at the start of a file; None when it contains nothing else. The stream's position is undefined
    afterwards.

    Args:
        plain: whether it is an uncompressed regular file, in which holes (read as NULs) can be skipped.
    """
    at = 0
    if plain:
        try:
            at = os.lseek(stream.fileno(), 0, os.SEEK_DATA)
        except OSError:  # no data at all, or a file system without holes
            at = 0
        stream.seek(at)
    while block := stream.read1(BLOCK_BYTES):  # a longer read would lose what precedes damage
        if text := block.lstrip(b"\0"):
            return at + len(block) - len(text)
        at += len(block)
    return None


def text_runs(at: int, data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield (offset, bytes, offset of the next text) for the texts in `data`, without the NULs at the start of lines. `at`: the
    offset of `data`.

    A crash leaves such NULs where a file was not written, and so does a writer whose file was cut. At most RUNS runs of them
    are removed.
    """
    begin = 0
    nuls = islice(_NULS.finditer(data), RUNS) if b"\0" in data else ()
    for run in nuls:
        if run.start() > begin:
            yield at + begin, data[begin : run.start()], at + run.end()
        begin = run.end()
    if begin < len(data):
        yield at + begin, data[begin:] if begin else data, at + len(data)


def _controls(text: bytes) -> int:
    return len(text) - len(text.translate(None, _CONTROLS))


def _plain(path: str, regular: bool) -> io.BufferedReader:
    if not regular:
        return Path(path).open("rb")
    _refuse_irregular(path, os.stat(path).st_mode)  # noqa: PTH116  (before it is opened: opening alone may start a device)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    plain = os.fdopen(descriptor, "rb")
    try:
        _refuse_irregular(path, os.fstat(descriptor).st_mode)  # it may have been replaced in between
    except SourceError:
        plain.close()
        raise
    return plain


def _refuse_irregular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise irregular(path, mode)


def _unpacked(plain: io.BufferedReader, path: str) -> io.BufferedReader:
    if path.endswith(".gz"):  # buffers itself; a second buffer would lose what precedes damage
        return cast(io.BufferedReader, gzip.GzipFile(fileobj=plain))
    if not is_compressed(path):
        return plain
    frames = zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True)
    return io.BufferedReader(cast(io.RawIOBase, frames))


def _refuse_binary(stream: io.BufferedReader, path: str) -> None:
    try:
        head = stream.peek(PROBE_BYTES)[:PROBE_BYTES]
        if head and not head.strip(b"\0") and _is_bounded(stream, path):
            start = text_start(stream, plain=not is_compressed(path))
            stream.seek(start or 0)
            head = stream.peek(PROBE_BYTES)[:PROBE_BYTES]
            stream.seek(0)
    except BROKEN as error:
        raise damaged(path, error) from error
    except OSError as error:
        raise refused(path, error) from error
    if head.startswith(_PACKED):
        raise SourceError(
            f"{path}: is compressed or an archive of a kind that is not read; unpack it first, or pipe it: ... | tocsin scan -"
        )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in head:
        raise SourceError(f"{path}: is UTF-16 text; convert it with: iconv -f UTF-16 -t UTF-8")
    if is_binary(head):
        raise SourceError(f"{path}: is not text (it holds NUL bytes)")


def _is_bounded(stream: io.BufferedReader, path: str) -> bool:
    """Return whether NULs come to an end: those of a device such as /dev/zero do not."""
    return stream.seekable() and stat.S_ISREG(os.stat("/dev/stdin" if path == STDIN else path).st_mode)  # noqa: PTH116
