"""File permissions: only the user of tocsin may read what it writes, whatever the umask of the shell or the service is.

The files hold lines of logs, and with them secrets that were not recognised.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITING = stat.S_IWGRP | stat.S_IWOTH


class Narrowed(Struct, frozen=True):
    """The result of `narrow`: how many files and folders below `root` were closed to other users, and a sentence for each that
    could not be closed."""

    root: Path
    count: int
    refused: tuple[str, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences for the operator; none when nothing was open to others."""
        if self.count:
            yield f"{self.root} was open to other users, and is now to you alone (files and folders: {self.count})"
        for failure in self.refused:
            yield f"{failure}; other users may read what is in it"


def keep_private() -> None:
    """Set the umask of this process and of those it starts, so that only their user can access new files and folders."""
    os.umask(OTHERS)


def narrow(root: Path) -> Narrowed:
    """Remove the permissions of others from `root` and all below it. Links are not followed; a missing file is no error."""
    count, refused = 0, list[str]()
    for path in _below(root.resolve()):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & OTHERS:
                path.chmod(mode & ~OTHERS)
                count += 1
        except FileNotFoundError:  # removed since it was listed
            continue
        except OSError as error:
            refused.append(f"{path} cannot be closed to others: {error.strerror}")
    return Narrowed(root, count, tuple(refused))


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents for this user alone; existing folders are not changed."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def make_file(file: Path) -> None:
    """Create an empty `file` for this user alone, unless it exists."""
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))


def distrusted(folder: Path) -> str | None:
    """Return the reason why other users may have written into `folder`; None when only this user can, or when it is missing."""
    try:
        status = folder.stat()
    except OSError:
        return None
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "other users can write to it" if status.st_mode & _WRITING else None


def _below(root: Path) -> Iterable[Path]:
    if not root.is_dir():
        return [root] if root.exists() else []
    entries = [root]
    for folder, folders, files in os.walk(root):
        paths = (Path(folder, name) for name in (*folders, *files))
        entries += [path for path in paths if not path.is_symlink()]
    return entries
