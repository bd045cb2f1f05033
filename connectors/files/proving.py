"""Put a line where a source of files reads it: into a file of its own if a path has room for one, else at the end of a log.

The file of its own stays: a followed file that is removed counts as lost lines.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from connectors.files.finding import find
from engine.errors import SourceDenied, SourceMissing

FILE_NAME = "tocsin-prove"


def put_line(paths: Sequence[str], line: str) -> Path:
    """Put `line` where a source with `paths` (files, folders, patterns) reads it; return the file.

    Raises SourceDenied when no file can be written, SourceMissing when there is neither a file nor a folder for one.
    """
    errors: list[OSError] = []
    logs = (Path(name) for name in find(list(paths)).files if not name.endswith((".gz", ".zst")))
    for path in (*_own_files(paths), *logs):
        try:
            _append(path, line)
            return path
        except OSError as error:
            errors.append(error)
    if not errors:
        raise SourceMissing(f"{' '.join(paths)}: there is no file yet, and no folder in which one would be read")
    why = f"{errors[0].filename}: {errors[0].strerror}"
    raise SourceDenied(f"no line can be put there ({why}); run it as a user who may write there, or name another --source")


def _own_files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the paths of files of its own that would be read, for each folder and each pattern."""
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112
            yield Path(path) / f"{FILE_NAME}.log"
            continue
        folder, pattern = os.path.split(path)
        name = pattern.replace("**", "*").replace("*", FILE_NAME, 1).replace("*", "")
        if "*" in pattern and fnmatchcase(name, pattern) and not glob.has_magic(name):
            yield from (Path(place) / name for place in sorted(glob.glob(folder or ".")) if os.path.isdir(place))  # noqa: PTH112, PTH207


def _append(path: Path, line: str) -> None:
    """Append a line to a file in one write, which a program that appends to it does not tear apart."""
    with suppress(FileExistsError):
        _create(path)
    with path.open("ab+", buffering=0) as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 1))
        begins_line = log.read(1) in (b"", b"\n")
        log.write(f"{'' if begins_line else chr(10)}{line}\n".encode())


def _create(path: Path) -> None:
    """Create a file that the run can read, whoever it runs as: the umask of this process is not that of a log, and a file of
    root belongs to the owner of its folder. Raises FileExistsError."""
    number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(number, 0o644)
        if os.geteuid() == 0:
            folder = path.parent.stat()
            with suppress(OSError):  # a file system of another machine may refuse it; all may read the file in any case
                os.fchown(number, folder.st_uid, folder.st_gid)
    finally:
        os.close(number)
