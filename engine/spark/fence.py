"""Reserve a checkpoint and an incident store for one job at a time, and notice when either is removed or replaced.

A lock is a file that the process holds with flock(2): the kernel releases it however the process ends. The lock of the
checkpoint lies in its folder, so the folder is the same one as long as the lock file is.
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
from engine.spark.alignment import Alignment, Course, decide
from engine.spark.plans import done, planned, query_of
from engine.store import Store

LOCK, MARK, QUERY = "lock", "store.json", "query"


class _FenceMark(Struct, frozen=True):
    """The mark in a checkpoint: the id of the store that it is used with."""

    store: str


class ProcessLock:
    """A lock file that one process at a time holds.

    Raises FenceError, which names what is `guarded`, when another process holds it.
    """

    def __init__(self, path: Path, guarded: str) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise FenceError(f"{guarded} is in use by another job (process {holder}): end that one, or use another") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

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


class Fence:
    """The checkpoint and the store of a running job."""

    def __init__(self, store: Store, checkpoint: Path, lock: ProcessLock) -> None:
        self._store, self._checkpoint, self._lock = store, checkpoint, lock
        self._has_query = query_of(checkpoint / QUERY) is not None

    def check(self) -> None:
        """Raise StoreLost or FenceError when the store or the checkpoint was removed or replaced since the job began.

        Costs a few calls of `stat`.
        """
        self._store.check_file()
        exists = (self._checkpoint / QUERY / "metadata").exists()
        if not self._lock.in_place() or (self._has_query and not exists):
            remedy = "start again: sources are read from where `start` says, and the incidents in the store stay"
            raise FenceError(f"the checkpoint {self._checkpoint} was removed or replaced while the job was running; {remedy}")
        self._has_query = self._has_query or exists


@contextmanager
def fenced(store: Store, checkpoint: Path, say: Callable[[str], None]) -> Iterator[Fence]:
    """Hold `store` and `checkpoint` for this process, after checking that they belong together; `say` takes a sentence about
    it.

    Raises FenceError, which says what to do, when another job holds one of them or they do not belong together; OSError when
    the checkpoint cannot be written to.
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
    """Raise FenceError when `checkpoint` was used with a store and there is none at `path`: opening it would create an empty
    one."""
    if path is None or path.exists() or done(checkpoint / QUERY) < 0:
        return
    remedy = f"set the checkpoint aside (mv {checkpoint} {checkpoint}.old) and start again, which reads from where `start` says"
    raise FenceError(
        f"the incident store {path} is gone, and the checkpoint {checkpoint} belongs to it: put it back, or {remedy}"
    )


def alignment(store: Store, checkpoint: Path) -> Alignment:
    """Return how far `store` and `checkpoint` have got. The query must not be running."""
    query = query_of(checkpoint / QUERY)
    last = store.last_batch(query) if query is not None else None
    return Alignment(
        query=query,
        planned=planned(checkpoint / QUERY),
        done=done(checkpoint / QUERY),
        belongs_to=_recorded_store(checkpoint),
        store=store.id,
        stored=last.batch if last is not None else -1,
        written_at=store.written_at(),
    )


def _admit(store: Store, checkpoint: Path, say: Callable[[str], None]) -> None:
    current = alignment(store, checkpoint)
    ruling = decide(current, str(checkpoint), str(store.path or store.name))
    if ruling.course is Course.REFUSE:
        raise FenceError(ruling.sentence)
    if ruling.course is Course.READ_AGAIN and current.query is not None:
        store.forget_batches(current.query, current.planned)
    if ruling.sentence:
        say(ruling.sentence)
    if current.belongs_to != store.id:
        temporary = checkpoint / f"{MARK}.new"
        temporary.write_text(dumps(_FenceMark(store.id)), encoding="utf-8")
        temporary.replace(checkpoint / MARK)


def _recorded_store(checkpoint: Path) -> str | None:
    with suppress(OSError, msgspec.MsgspecError):
        return loads((checkpoint / MARK).read_text(encoding="utf-8"), _FenceMark).store
    return None
