"""The folder of a run: everything that Spark, Java and the workers write for a while, in the user's temporary folder.

Its end takes it away. A run that is killed leaves it, and the next one that starts takes it away then.
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
    """A new folder of mode 0700. Its name holds its owner, the process and when that started; the owner holds a lock on it.

    Raises OSError when it cannot be made.
    """

    def __init__(self, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        owner = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=f"tocsin-run-{owner}-{_started(owner)}-", dir=base))
        self._lock = os.open(self.path, os.O_RDONLY)  # not inherited; the system lets go of it however the process ends
        with suppress(OSError):  # a file system without locks: the name tells
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # removed before
            os.close(self._lock)


def remove_left(base: Path | None = None) -> list[Path]:
    """Take away the folders of this user's runs that have ended without doing so; return them. Those of running ones stay."""
    base = base or Path(tempfile.gettempdir())
    with suppress(OSError):
        left = [path for path in base.iterdir() if _is_left(path)]
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        return left
    return []


def _is_left(path: Path) -> bool:
    """Tell whether `path` is the folder of a run of this user that is over: its process is gone, and nobody holds its lock
    (a process of another container has a number that means nothing here)."""
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
    except OSError:  # held, or there is no telling
        return False
    finally:
        os.close(handle)


def _runs(pid: int, started: str) -> bool:
    """Tell whether the process runs that had this number and started then; another one may have the number since."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(pid) == started


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since the machine did; `0` where the system does not say (no /proc)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "0"
    return stat.rpartition(")")[2].split()[19]  # field 22 of proc(5); the name, field 2, may hold anything
