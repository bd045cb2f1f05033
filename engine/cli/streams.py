"""The streams that a command writes to: closed ones, full disks behind them, readers that went away."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class UnwrittenError(OSError):
    """Stdout cannot be written to; a reader that went away is a BrokenPipeError as always."""


class _Output(FileIO):
    """Says by the type of its exception that it was the output that failed: a command reads and writes much else."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(error.errno, error.strerror) from None


class _Complaints(FileIO):
    """Lets go of what cannot be written: a command does its work, and ends with its own code, though nobody listens."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _over(kind: type[FileIO], stream: TextIOWrapper) -> TextIOWrapper:
    """Return `stream` over a file of `kind`; itself where it is no file."""
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
    """Make stdout and stderr fit to be written to: a terminal without UTF-8 gets escapes, and where nobody gave us one of them
    what is written goes nowhere. Its number would else be that of the next file opened, and Python would print to the other."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None and getattr(sys, f"__{name}__") is None:
            _give(number, name)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if type(sys.stdout) is TextIOWrapper:
        sys.stdout = _over(_Output, sys.stdout)
    if type(sys.stderr) is TextIOWrapper:
        sys.stderr = _over(_Complaints, sys.stderr)


def settle() -> None:
    """Write out what waits, and let go of it where that cannot be: the interpreter would complain when it ends, and change the
    exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            sys.stdout.flush()


def _give(number: int, name: str) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
