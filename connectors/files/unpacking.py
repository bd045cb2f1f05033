"""Makes plain UTF-8 files of what a scan cannot read as it is: archives (tar, zip), xz and bz2, UTF-16, cp949, and what other
programs print of logs (exports.py).

Archives in archives are unpacked one level deep. Members are written under names of our own into a private folder, so no name
or link in an archive leads anywhere. Total size, ratio and number of members are bounded.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from msgspec import Struct

from connectors.files.exports import MOST_CHARACTERS, Split, missing_of, of_grep, of_loki, of_markdown, of_search, split_of
from connectors.files.finding import SKIPPED, is_log
from connectors.files.opening import STDIN, refused
from engine.errors import SourceError

HEAD_BYTES = 64 * 1024  # by which the kind of a file is decided
BLOCK_BYTES = 1 << 20
MOST_BYTES = 8 << 30  # unpacked, in all
MOST_MEMBERS = 20_000
MOST_RATIO = 1_000  # of unpacked to packed bytes; the densest logs reach some hundred
RATIO_FROM_BYTES = 64 << 20  # unpacked; below, a high ratio does no harm
NESTED = 1
MOST_OF_A_NAME = 100  # characters
WIDE_SHARE = 0.3  # of NULs at even or at odd places in UTF-16 text without a mark

_TAR_SIGN = (257, b"ustar")
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, NotImplementedError)
_HIGH = re.compile(rb"[\x80-\xff]+")
_WANSUNG = re.compile(rb"(?:[\xa1-\xfe][\xa1-\xfe])+")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_OPENERS: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
_ZIP = b"PK\x03\x04"
STDIN_NAME = "stdin"
_KINDS: Mapping[Split, str] = {
    of_grep: "the output of grep",
    of_loki: "an answer of Loki's API",
    of_markdown: "Markdown: what stands around its fences is left out",
    of_search: "an answer of Elasticsearch's _search",
}


class StagedFile(Struct, frozen=True):
    """A file to read: `path`, where its plain text is; `name`, by which it is reported."""

    path: str
    name: str


class Unpacking:
    """Unpacks the files of one scan.

    Attributes:
        notes: sentences about what was unpacked, skipped and converted.
        errors: what could not be unpacked.

    Args:
        folder: returns the folder to write into; called when it is needed first.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._written = self._packed = self._members = 0
        self.notes: list[str] = []
        self.errors: list[SourceError] = []

    def files(self, path: str) -> Iterator[StagedFile]:
        """Yield the files to read for `path`: itself, or those that were made of it."""
        if path == STDIN:
            yield from self._stdin()
            return
        if not os.path.isfile(path):  # noqa: PTH113  (raises nothing)
            yield StagedFile(path, path)
            return
        self._packed += os.path.getsize(path)  # noqa: PTH202
        yield from self._staged(path, path, 0)

    def _stdin(self) -> Iterator[StagedFile]:
        """Yield standard input, which is written to a file first if it is no plain log."""
        stream = getattr(sys.stdin, "buffer", None)
        try:
            head = stream.peek(HEAD_BYTES) if stream is not None else b""
        except (OSError, ValueError, AttributeError):  # closed, or no buffer: reading it reports the error
            head = b""
        if stream is None or not _is_special(head):
            yield StagedFile(STDIN, STDIN)
            return
        try:
            self._packed = MOST_BYTES
            path = self._write(stream, STDIN_NAME, STDIN_NAME)
        except (OSError, SourceError) as error:
            self.errors.append(error if isinstance(error, SourceError) else refused(STDIN_NAME, error))
            return
        self._packed, self._written = path.stat().st_size, 0
        yield from self._staged(str(path), STDIN_NAME, 0)

    def _staged(self, path: str, name: str, depth: int) -> Iterator[StagedFile]:
        try:
            with Path(path).open("rb") as plain:
                yield from self._of_kind(plain, path, name, depth)
        except OSError as error:
            if depth:
                self.errors.append(refused(name, error))
            else:
                yield StagedFile(path, name)  # reading it reports the error
        except _DAMAGE as error:
            self.errors.append(SourceError(f"{name}: the archive is damaged or ends early ({error})"))
        except SourceError as error:
            self.errors.append(error)

    def _of_kind(self, plain: io.BufferedReader, path: str, name: str, depth: int) -> Iterator[StagedFile]:
        head = plain.peek(HEAD_BYTES)[:HEAD_BYTES]
        opener = next((opener for sign, opener in _OPENERS.items() if head.startswith(sign)), None)
        if head.startswith(_ZIP):
            yield from self._archive(_zip_members(plain, name), name, depth)
        elif opener is not None:
            yield from self._compressed(io.BufferedReader(cast(io.RawIOBase, opener(plain))), path, name, depth)
        elif _is_tar(head):
            yield from self._archive(_tar_members(plain), name, depth)
        elif (encoding := encoding_of(head)) is not None:
            self.notes.append(f"{name}: is {encoding} text, read as such")
            yield StagedFile(self._transcoded(plain, name, encoding), name)
        elif (split := split_of(_text(head), name)) is not None:
            yield from self._split(plain, split, path, name)
        else:
            yield StagedFile(path, name)

    def _split(self, plain: IO[bytes], split: Split, path: str, name: str) -> Iterator[StagedFile]:
        """Yield the logs in what another program printed of them; the file as it is when it has none."""
        content = plain.read(MOST_CHARACTERS + 1)
        if len(content) > MOST_CHARACTERS:
            raise SourceError(f"{name}: is larger than {MOST_CHARACTERS >> 20} MiB; give the logs in several files")
        try:
            text = content.decode("utf-8", "replace")
            logs = {part: log for part, log in split(text).items() if log.strip()}
            missing = missing_of(text) if split is of_search else ()
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            self.notes.append(f"{name}: looks like {_KINDS[split]}, but cannot be read as such ({error})")
            yield StagedFile(path, name)
            return
        self.notes.append(f"{name}: read as {_KINDS[split]}")
        if missing:
            remedy = "search for less at a time, or page by page"
            self.errors.append(SourceError(f"{name}: is no whole answer: {', '.join(missing)}; {remedy}"))
        for part, log in logs.items():
            base = PurePosixPath(part or name).name
            yield StagedFile(str(self._store([log.encode()], base, name)), f"{name}/{part.lstrip('/')}" if part else name)

    def _compressed(self, stream: io.BufferedReader, path: str, name: str, depth: int) -> Iterator[StagedFile]:
        try:
            head = stream.peek(HEAD_BYTES)
        except _DAMAGE:
            head = b""
        if _is_tar(head):
            yield from self._archive(_tar_members(stream), name, depth)
        elif name.endswith(".gz") and encoding_of(head) is None:
            yield StagedFile(path, name)  # is read as it is, also when it is damaged
        else:
            inner = self._write(stream, PurePosixPath(name).stem, name)
            with inner.open("rb") as plain:
                encoding = encoding_of(plain.read(HEAD_BYTES))
                plain.seek(0)
                yield StagedFile(self._transcoded(plain, name, encoding) if encoding else str(inner), name)

    def _archive(self, members: Iterator[tuple[str, IO[bytes]]], name: str, depth: int) -> Iterator[StagedFile]:
        if depth > NESTED:
            raise SourceError(f"{name}: is an archive in an archive in an archive; unpack the outer one first")
        skipped = 0
        for inner, stream in members:
            if not is_log(PurePosixPath(inner).name):
                skipped += 1
                continue
            self._members += 1
            if self._members > MOST_MEMBERS:
                raise SourceError(f"{name}: has more than {MOST_MEMBERS:,} members; the others were not read")
            path = self._write(stream, PurePosixPath(inner).name, name)
            yield from self._staged(str(path), f"{name}/{inner.lstrip('/')}", depth + 1)
        if skipped:
            self.notes.append(f"{name}: {skipped} {'file' if skipped == 1 else 'files'} skipped: {SKIPPED}")

    def _transcoded(self, plain: IO[bytes], name: str, encoding: str) -> str:
        text = codecs.getreader(encoding)(plain, "replace")
        blocks = iter(lambda: text.read(BLOCK_BYTES), "")
        return str(self._store((block.encode() for block in blocks), PurePosixPath(name).name, name))

    def _write(self, stream: IO[bytes], base: str, name: str) -> Path:
        return self._store(iter(lambda: stream.read(BLOCK_BYTES), b""), base, name)

    def _store(self, blocks: Iterable[bytes], base: str, name: str) -> Path:
        """Write `blocks` to a new file whose name ends in `base`, so that rotation shows in it. Raises SourceError beyond the
        bounds, and then leaves the file with what is within them out."""
        folder = self._folder() / str(len(os.listdir(self._folder())))  # noqa: PTH208
        folder.mkdir(mode=0o700)
        path = folder / (re.sub(r"[\0/]", "_", base)[-MOST_OF_A_NAME:] or "log")
        with path.open("wb") as file:
            for block in blocks:
                self._written += len(block)
                self._check_bounds(name)
                file.write(block)
        return path

    def _check_bounds(self, name: str) -> None:
        if self._written > MOST_BYTES:
            raise SourceError(f"{name}: unpacks to more than {MOST_BYTES >> 30} GiB; unpack it yourself and give the files")
        if self._written > RATIO_FROM_BYTES and self._written > MOST_RATIO * self._packed:
            raise SourceError(f"{name}: unpacks to more than {MOST_RATIO:,} times its size, as no log does; it is not read")


def _text(head: bytes) -> str:
    return head.decode("utf-8", "replace")


def _is_special(head: bytes) -> bool:
    """Return whether a content that begins with `head` is no plain UTF-8 log."""
    is_packed = head.startswith((_ZIP, *_OPENERS)) or _is_tar(head)
    return is_packed or encoding_of(head) is not None or split_of(_text(head), STDIN_NAME) is not None


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text that begins with `head` where it is not UTF-8: `utf-16` (with a mark), `utf-16-le`,
    `utf-16-be`, `cp949`; None for all others."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = len(head) // 2
    if b"\0" in head and pairs > 8:
        even, odd = head[0 : 2 * pairs : 2].count(0) / pairs, head[1 : 2 * pairs : 2].count(0) / pairs
        if odd >= WIDE_SHARE and even == 0:
            return "utf-16-le"
        return "utf-16-be" if even >= WIDE_SHARE and odd == 0 else None
    return "cp949" if _is_korean(head) else None


def _is_korean(head: bytes) -> bool:
    """Return whether the bytes above ASCII are no UTF-8, and pairs of KS X 1001 that are mostly Hangul."""
    complete = head[: head.rfind(b"\n") + 1] or head
    runs = _HIGH.findall(complete)
    if not runs or not all(_WANSUNG.fullmatch(run) for run in runs):
        return False
    try:
        complete.decode()
    except UnicodeDecodeError:
        text = b"".join(runs).decode("cp949", "replace")
        return len(_HANGUL.findall(text)) * 2 > len(text)
    return False


def _is_tar(head: bytes) -> bool:
    at, sign = _TAR_SIGN
    return head[at : at + len(sign)] == sign


def _tar_members(stream: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content


def _zip_members(plain: IO[bytes], name: str) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(plain) as archive:
        for member in archive.infolist():
            if member.flag_bits & 1:
                raise SourceError(f"{name}: is encrypted; unpack it first")
            if not member.is_dir():
                with archive.open(member) as content:
                    yield member.filename, content
