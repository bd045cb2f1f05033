"""Lock files: a process holds one with flock(2), and the kernel releases it however the process ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from socket import gethostname

from engine.errors import FenceError, StoreError

_LOOK_S = 0.1  # longer than `lock_holder` has a file locked


class LockHeld(FenceError):
    """Another process holds a lock; `holder` names it for people."""

    def __init__(self, holder: str, sentence: str) -> None:
        self.holder = holder
        super().__init__(sentence)


def lock_holder(path: Path) -> str | None:
    """Return the process that holds the lock file at `path`, for people; None when none does. The lock is tried for an instant.

    Raises StoreError when the file cannot be opened, or the file system gives no locks.
    """
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _holder_in(file.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at: {error.strerror}") from None
    return None


def _holder_in(file: int) -> str:
    """Return the process that a lock file names, with its machine when that is another one: the disk may be shared."""
    number, _, host = os.read(file, 300).decode("ascii", "replace").strip().partition(" ")
    return f"process {number or 'unknown'}{f' on {host}' if host not in ('', gethostname()) else ''}"


def _lock(file: int) -> None:
    """Lock a file for this process; one that is only looked at (`lock_holder`) is tried again. Raises BlockingIOError."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_LOOK_S)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class ProcessLock:
    """A lock file that one process at a time holds.

    Raises LockHeld, which names what is `guarded`, when another process holds it, StoreError when the file system gives no
    lock, and OSError when the file cannot be written.
    """

    def __init__(self, path: Path, guarded: str) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._file)
        except BlockingIOError:
            holder = _holder_in(self._file)
            os.close(self._file)
            sentence = f"{guarded} is in use by another job ({holder}): end that one, or use another"
            raise LockHeld(holder, sentence) from None
        except OSError as error:
            os.close(self._file)
            sentence = f"{path}: {guarded} cannot be locked there ({error.strerror}); move it to a disk of this machine"
            raise StoreError(sentence) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()} {gethostname()}\n".encode())

    def in_place(self) -> bool:
        """Return whether the held file is still the one at its path."""
        try:
            status = self._path.stat()
        except OSError:
            return False
        held_status = os.fstat(self._file)
        return (status.st_dev, status.st_ino) == (held_status.st_dev, held_status.st_ino)

    def release(self) -> None:
        """Release the lock. The file stays: if it were removed, two processes could hold locks of the same name."""
        os.close(self._file)
