"""The output streams of a command: closed ones, full disks, readers that closed the pipe."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class UnwrittenError(OSError):
    """Stdout cannot be written to. A closed pipe raises BrokenPipeError instead."""


class _Output(FileIO):
    """Raises UnwrittenError, so that a failure of stdout is told apart from failures of other files."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(error.errno, error.strerror) from None


class _ErrorOutput(FileIO):
    """Drops what cannot be written to stderr, so that the command goes on and ends with its own exit code."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _wrap(kind: type[FileIO], stream: TextIOWrapper) -> TextIOWrapper:
    """Return a stream like `stream` over a file of class `kind`; `stream` itself when it is not over a file."""
    raw = getattr(stream.buffer, "raw", stream.buffer)  # PYTHONUNBUFFERED leaves the buffer out
    if not isinstance(raw, FileIO):
        return stream
    stream.flush()
    output = kind(stream.fileno(), "w", closefd=False)
    unbuffered = raw is stream.buffer
    return TextIOWrapper(
        cast(BinaryIO, output) if unbuffered else BufferedWriter(output),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )


def prepare() -> None:
    """Prepare stdout and stderr for writing: characters that a terminal cannot encode become escapes, and a stream that is
    closed is opened on the null device. Its descriptor would otherwise be reused by the next file that is opened, and messages
    would be written to that file."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None and getattr(sys, f"__{name}__") is None:
            _open_null(number, name)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if type(sys.stdout) is TextIOWrapper:
        sys.stdout = _wrap(_Output, sys.stdout)
    if type(sys.stderr) is TextIOWrapper:
        sys.stderr = _wrap(_ErrorOutput, sys.stderr)


def settle() -> None:
    """Flush stdout, and discard its buffer when that fails: the interpreter would report an error at its end and change the
    exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
            sys.stdout.flush()


def _open_null(number: int, name: str) -> None:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
