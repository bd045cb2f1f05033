"""Opening files for their uncompressed bytes: plain, gzip, zstd, standard input; what is no log is refused.

Nothing here waits for a writer: a pipe or a device is opened only when the caller allows it.
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

from connectors.files.rotation import is_compressed
from engine.errors import SourceDenied, SourceError, SourceMissing

STDIN = "-"
PROBE_BYTES = 8192
BLOCK_BYTES = 1 << 20
BINARY_FROM = 1 / 12  # in random bytes 26 of 256 are such, in 8 KiB of them never less than this

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
RUNS = 64  # each makes a piece more of a block: a block of nothing else shall not make a million
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


@contextmanager
def opened(path: str, stdin: BinaryIO | None = None, regular: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file for reading its uncompressed bytes; refuse a binary one.

    Raises SourceMissing, SourceDenied or SourceError; also for what is not a regular file, when only `regular` ones are read.
    """
    with content(path, stdin, regular) as stream:
        _refuse_binary(stream, path)
        yield stream


@contextmanager
def content(path: str, stdin: BinaryIO | None = None, regular: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file as `opened` does, whatever it holds."""
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
    """Return the error of this project for an operating system's refusal to read `path`."""
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{path}: there is no such file")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: no permission to read it; run as a user that may, or change its mode")
    return SourceError(f"{path}: cannot be read ({error.strerror or error})")


def irregular(path: str, mode: int) -> SourceError:
    """Return the error for a path that is not a regular file."""
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    how = "; a pipe can be read by: tocsin scan PATH" if stat.S_ISFIFO(mode) else ""
    return SourceError(f"{path}: is {kind}, and only regular files are read{how}")


def damaged(path: str, error: Exception) -> SourceError:
    """Return the error for a compressed file that cannot be read on."""
    return SourceError(f"{path}: the compressed data is damaged or ends early ({error})")


def is_binary(head: bytes) -> bool:
    """Tell whether a file that begins with `head` is no log.

    A log may hold NULs: at its start, where a writer went on behind the place that it was cut at; before a line, after a crash;
    in what somebody sent. Binary is what holds NULs and is, those before lines aside, nothing, or a control character in one of
    12 bytes or more (BINARY_FROM).
    """
    if b"\0" not in head:
        return False
    text = _NULS.sub(b"", head)
    return _controls(text) >= BINARY_FROM * len(text)


def text_start(stream: io.BufferedReader, plain: bool) -> int | None:
    """Return how many NULs a file begins with; None when it holds nothing else. Leaves the stream anywhere.

    Args:
        plain: it is a regular file and not compressed: holes, which are read as NULs, may be passed over.
    """
    at = 0
    if plain:
        try:
            at = os.lseek(stream.fileno(), 0, os.SEEK_DATA)
        except OSError:  # no data at all, or a file system that knows no holes
            at = 0
        stream.seek(at)
    while block := stream.read1(BLOCK_BYTES):  # a longer read would lose what precedes damage
        if text := block.lstrip(b"\0"):
            return at + len(block) - len(text)
        at += len(block)
    return None


def text_runs(at: int, data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield (position, bytes, position of what follows) of `data`, which begins at `at`, without NULs that lines begin with: a
    crash leaves such where a file was not written, and a writer that was cut short. At most RUNS of them are left out.
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
    _refuse_irregular(path, os.stat(path).st_mode)  # noqa: PTH116  (before it is opened: that alone may ask a device to act)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    plain = os.fdopen(descriptor, "rb")
    try:
        _refuse_irregular(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
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
    """Tell whether NULs may be read to their end: a device such as /dev/zero has none."""
    return stream.seekable() and stat.S_ISREG(os.stat("/dev/stdin" if path == STDIN else path).st_mode)  # noqa: PTH116
