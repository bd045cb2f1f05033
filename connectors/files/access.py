"""Explains why the system denies a file: the path in the way, who has the right, and how to get it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

Access = Callable[[str, int], bool]  # whether this process has an access (os.R_OK, os.X_OK) to a path


class ClosedPath(Struct, frozen=True):
    """A file or folder that this process may not read, or, if `is_ancestor`, a folder above it that it may not enter. `mode`:
    its st_mode."""

    path: str
    mode: int
    owner: str
    group: str
    is_ancestor: bool = False

    @property
    def group_may(self) -> bool:
        """Whether the members of its group have the right; group root counts as root alone."""
        in_folder = stat.S_IXGRP if self.is_ancestor else stat.S_IRGRP | stat.S_IXGRP
        needed = in_folder if stat.S_ISDIR(self.mode) else stat.S_IRGRP
        return self.mode & needed == needed and self.group != "root"

    @property
    def remedy(self) -> str:
        """How to get the right, as a clause."""
        if self.group_may:
            return f"group {self.group} may: add the user to it (usermod -aG {self.group} USER) and start again"
        where = self.path if stat.S_ISDIR(self.mode) else str(Path(self.path).parent)
        grant = f"entry (setfacl -m u:USER:x {self.path})" if self.is_ancestor else f"reading (setfacl -R -m u:USER:rX {where})"
        return f"only {self.owner} may: run as {self.owner}, with CAP_DAC_READ_SEARCH, or grant {grant}"


def missing_right(path: str, may: Access = os.access) -> str:
    """Return the missing right to read `path`, and how to get it, as a clause without the path."""
    closed = closed_path(path, may)
    if closed is None:
        return "run as a user that may, or change its mode"
    full_path = "" if closed.path == os.path.abspath(path) else f"{closed.path} is closed, and "  # noqa: PTH100  (links stay)
    return f"{full_path}{closed.remedy}"


def closed_path(path: str, may: Access = os.access) -> ClosedPath | None:
    """Return the first path from the root on that may not be read or entered: a folder above `path`, `path` itself, or the same
    of the target of its link; None when none is found."""
    for full_path in (os.path.abspath(path), os.path.realpath(path)):  # noqa: PTH100
        for part in (*reversed(Path(full_path).parents), Path(full_path)):
            try:
                status = part.stat()
            except OSError:
                break
            last = str(part) == full_path
            needed = (os.R_OK | os.X_OK if stat.S_ISDIR(status.st_mode) else os.R_OK) if last else os.X_OK
            if not may(str(part), needed):
                return ClosedPath(str(part), status.st_mode, _owner(status.st_uid), _group(status.st_gid), not last)
    return None


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"{gid}"
