"""Who may read what tocsin writes: its own user, whatever the umask of the shell or the service says.

What is kept holds lines of logs, and what was not recognised as a secret in them.
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
    """What was found below `root` that others may read: how many files and folders were closed to them, and those that could
    not be, with the reason."""

    root: Path
    count: int
    refused: tuple[str, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """What is said of it; nothing where nothing was open to others."""
        if self.count:
            yield f"{self.root} was open to other users, and is now to you alone (files and folders: {self.count})"
        for each in self.refused:
            yield f"{each}; other users may read what is in it"


def keep_private() -> None:
    """Let this process, and those that it starts, make files and folders for their user alone."""
    os.umask(OTHERS)


def narrow(root: Path) -> Narrowed:
    """Take from others what they may do with `root` and all below it. Links are not followed; what is not there is no error."""
    count, refused = 0, list[str]()
    for path in _below(root.resolve()):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & OTHERS:
                path.chmod(mode & ~OTHERS)
                count += 1
        except FileNotFoundError:  # gone since it was listed
            continue
        except OSError as error:
            refused.append(f"{path} cannot be closed to others: {error.strerror}")
    return Narrowed(root, count, tuple(refused))


def make_folder(folder: Path) -> None:
    """Make `folder`, and those above it that are missing, for this user alone; one that is there stays as it is."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def make_file(file: Path) -> None:
    """Make an empty `file` for this user alone, unless it is there."""
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))


def distrusted(folder: Path) -> str | None:
    """Return why what lies in `folder` may be somebody else's work; None when only its user can have written it, or when it is
    not there."""
    try:
        found = folder.stat()
    except OSError:
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "other users can write to it" if found.st_mode & _WRITING else None


def _below(root: Path) -> Iterable[Path]:
    if not root.is_dir():
        return [root] if root.exists() else []
    found = [root]
    for folder, folders, files in os.walk(root):
        paths = (Path(folder, name) for name in (*folders, *files))
        found += [path for path in paths if not path.is_symlink()]
    return found
