"""The folder of a run, in the user's temporary folder: it holds the temporary files of Spark, Java and the workers.

The end of the run removes it. A run that is killed leaves it behind; the next run that starts removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"tocsin-run-(\d+)-(\d+)-\w+")


class RunFolder:
    """A new folder of mode 0700. Its name contains the process id of its owner and when that process started; the owner holds a
    lock on it.

    Raises OSError when it cannot be created.
    """

    def __init__(self, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        owner = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=f"tocsin-run-{owner}-{_started(owner)}-", dir=base))
        self._lock = os.open(self.path, os.O_RDONLY)  # not inherited; the system releases it however the process ends
        with suppress(OSError):  # on a file system without locks the name has to do
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Delete the folder. A second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # closed before
            os.close(self._lock)


def remove_stale(base: Path | None = None) -> list[Path]:
    """Delete the folders that ended runs of this user left behind, and return them. Folders of live runs stay."""
    base = base or Path(tempfile.gettempdir())
    with suppress(OSError):
        stale = [path for path in base.iterdir() if _is_stale(path)]
        for path in stale:
            shutil.rmtree(path, ignore_errors=True)
        return stale
    return []


def _is_stale(path: Path) -> bool:
    """Return whether `path` is the folder of an ended run of this user: its process is gone, and nobody holds its lock (the id
    of a process in another container means nothing here)."""
    name = _NAME.fullmatch(path.name)
    if name is None or _runs(int(name[1]), name[2]):
        return False
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(handle).st_uid == os.geteuid()
    except OSError:  # locked, or locks do not work here
        return False
    finally:
        os.close(handle)


def _runs(pid: int, started: str) -> bool:
    """Return whether the process `pid` that started at `started` still runs; the id may have been reused since."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(pid) == started


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; `0` where the system does not say (no /proc)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "0"
    return stat.rpartition(")")[2].split()[19]  # field 22 of proc(5); the name, field 2, may hold anything
