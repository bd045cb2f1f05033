"""What keeps a checkpoint and an incident store together: one job at a time has them, and they stay the ones it began with.

A lock is a file that the living process holds (flock): the kernel lets go of it whatever ends the process. As the lock of the
checkpoint lies in its folder, the folder is still the same one as long as the lock's file is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from engine.codec import dumps, loads
from engine.errors import FenceError
from engine.spark.alignment import Alignment, Course, ruled
from engine.spark.plans import done, planned, query_of
from engine.store import Store

LOCK, MARK, QUERY = "lock", "store.json", "query"


class _FenceMark(Struct, frozen=True):
    """What is written down in a checkpoint: the id of the store that it is used with."""

    store: str


class ProcessLock:
    """A file that one process at a time holds. Raises FenceError, naming `what` it guards, when another one does."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise FenceError(f"{what} is in use by another job (process {holder}): end that one, or use another") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def in_place(self) -> bool:
        """Return whether the file that is held is still the one at its path."""
        try:
            there = self._path.stat()
        except OSError:
            return False
        held = os.fstat(self._file)
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def release(self) -> None:
        """Let others have it. The file stays: removing it would let two have locks of the same name."""
        os.close(self._file)


class Fence:
    """The checkpoint and the store of a running job."""

    def __init__(self, store: Store, checkpoint: Path, lock: ProcessLock) -> None:
        self._store, self._checkpoint, self._lock = store, checkpoint, lock
        self._begun = query_of(checkpoint / QUERY) is not None

    def check(self) -> None:
        """Raise StoreLost or FenceError when the store or the checkpoint is not the one any more that the job began with.
        Costs a few `stat`."""
        self._store.check_file()
        there = (self._checkpoint / QUERY / "metadata").exists()
        if not self._lock.in_place() or (self._begun and not there):
            anew = "start again: sources are read from where `start` says, and the incidents in the store stay"
            raise FenceError(f"the checkpoint {self._checkpoint} was removed or replaced while the job was running; {anew}")
        self._begun = self._begun or there


@contextmanager
def fenced(store: Store, checkpoint: Path, say: Callable[[str], None]) -> Iterator[Fence]:
    """Have `store` and `checkpoint` for oneself, once they are known to belong together; `say` is told what was done for that.

    Raises FenceError when another job has one of them or they do not belong together, saying what to do; OSError when the
    checkpoint cannot be written to.
    """
    locks: list[ProcessLock] = []
    try:
        if store.path is not None:
            locks.append(ProcessLock(store.path.with_name(f"{store.path.name}.lock"), f"the incident store {store.path}"))
        locks.append(ProcessLock(checkpoint / LOCK, f"the checkpoint {checkpoint}"))
        _admit(store, checkpoint, say)
        yield Fence(store, checkpoint, locks[-1])
    finally:
        for lock in reversed(locks):
            lock.release()


def refuse_lost_store(path: Path | None, checkpoint: Path) -> None:
    """Raise FenceError when `checkpoint` was used with a store and there is none at `path`: opening would make an empty one."""
    if path is None or path.exists() or done(checkpoint / QUERY) < 0:
        return
    anew = f"set the checkpoint aside (mv {checkpoint} {checkpoint}.old) and start again, which reads from where `start` says"
    raise FenceError(
        f"the incident store {path} is gone, and the checkpoint {checkpoint} belongs to it: put it back, or {anew}"
    )


def alignment(store: Store, checkpoint: Path) -> Alignment:
    """Return how far they are. The query must not be running."""
    query = query_of(checkpoint / QUERY)
    last = store.last_batch(query) if query is not None else None
    return Alignment(
        query=query,
        planned=planned(checkpoint / QUERY),
        done=done(checkpoint / QUERY),
        belongs_to=_marked(checkpoint),
        store=store.id,
        stored=last.batch if last is not None else -1,
        written_at=store.written_at(),
    )


def _admit(store: Store, checkpoint: Path, say: Callable[[str], None]) -> None:
    found = alignment(store, checkpoint)
    ruling = ruled(found, str(checkpoint), str(store.path))
    if ruling.course is Course.REFUSE:
        raise FenceError(ruling.sentence)
    if ruling.course is Course.READ_AGAIN and found.query is not None:
        store.forget_batches(found.query, found.planned)
    if ruling.sentence:
        say(ruling.sentence)
    if found.belongs_to != store.id:
        fresh = checkpoint / f"{MARK}.new"
        fresh.write_text(dumps(_FenceMark(store.id)), encoding="utf-8")
        fresh.replace(checkpoint / MARK)


def _marked(checkpoint: Path) -> str | None:
    with suppress(OSError, msgspec.MsgspecError):
        return loads((checkpoint / MARK).read_text(encoding="utf-8"), _FenceMark).store
    return None
