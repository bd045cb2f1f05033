"""Reserve a checkpoint and an incident store for one job at a time, and notice when either is removed or replaced.

A store on a server is held by a lease (engine/store/leases.py), files by locks. The lock of the checkpoint lies in its folder,
so the folder is the same one as long as the lock file is. A checkpoint elsewhere (`hdfs:`, `s3a:`) has no lock: the mark in it
binds it to one store, and the store is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from engine.codec import dumps, loads
from engine.errors import FenceError
from engine.ports import Say
from engine.spark.alignment import Alignment, Course, decide
from engine.spark.checkpoints import CheckpointFiles, LocalCheckpoint
from engine.spark.plans import done, planned, query_of
from engine.store import Store
from engine.store.keeping import LeaseKeeper, take_from_the_dead
from engine.store.leases import HeldLease
from engine.store.locks import ProcessLock
from engine.store.outage import until_back

LOCK, MARK, QUERY = "lock", "store.json", "query"
JOB = "job"  # the name of its lease


class _FenceMark(Struct, frozen=True):
    """The mark in a checkpoint: the id of the store that it is used with."""

    store: str


class Fence:
    """The checkpoint and the store of a running job. `store` is the store for what the job writes: fenced by its lease, if it
    has one."""

    def __init__(self, store: Store, files: CheckpointFiles, lock: ProcessLock, keeper: LeaseKeeper | None = None) -> None:
        self.store = store if keeper is None else store.fenced_by(keeper.lease)
        self._files, self._lock, self._keeper = files, lock, keeper
        self._has_query = files.is_local and query_of(files.within(QUERY)) is not None

    def check(self) -> None:
        """Raise StoreLost or FenceError when the store or the checkpoint was removed or replaced since the job began, and
        LeaseLost when another job has taken over.

        Costs a few looks at local files; one that is elsewhere is not looked at, as Spark fails without it.
        """
        self.store.check_file()
        if self._keeper is not None:
            self._keeper.check()
        exists = self._files.is_local and self._files.text(f"{QUERY}/metadata") is not None
        if not self._lock.in_place() or (self._has_query and not exists):
            remedy = "start again: sources are read from where `start` says, and the incidents in the store stay"
            raise FenceError(
                f"the checkpoint {self._files.location} was removed or replaced while the job was running; {remedy}"
            )
        self._has_query = self._has_query or exists


@contextmanager
def fenced(
    store: Store,
    folder: Path,
    say: Say,
    pause: Callable[[float], object] = time.sleep,
    files: CheckpointFiles | None = None,
) -> Iterator[Fence]:
    """Hold `store` and the checkpoint for this process, after checking that they belong together; `say` takes a sentence about
    it. A store that is a file is held by a lock, one on a server by a lease, which is waited for while the server is away.

    Args:
        folder: the job's folder on this machine, which is locked.
        files: the checkpoint; None: it is in `folder`.
        pause: waits for a number of seconds; a true result means that a stop was requested, and StoreAway is raised.

    Raises FenceError, which says what to do, when another job holds one of them or they do not belong together; OSError when
    the checkpoint cannot be written to.
    """
    files = files or LocalCheckpoint(folder)
    locks: list[ProcessLock] = []
    stack = ExitStack()
    try:
        if store.path is not None:
            locks.append(ProcessLock(store.path.with_name(f"{store.path.name}.lock"), f"the incident store {store.path}"))
        locks.append(ProcessLock(folder / LOCK, f"the checkpoint {files.location}"))
        keeper = stack.enter_context(_leased(store, say, pause)) if store.is_on_a_server else None
        until_back(lambda: _admit(store, files, say), pause, say)
        yield Fence(store, files, locks[-1], keeper)
    finally:
        stack.close()
        for lock in reversed(locks):
            lock.release()


@contextmanager
def _leased(store: Store, say: Say, pause: Callable[[float], object]) -> Iterator[LeaseKeeper]:
    """Hold the lease of the job while the body runs. Raises FenceError when another job renews it."""
    lease = until_back(lambda: take_from_the_dead(store, JOB, pause, say), pause, say)
    if isinstance(lease, HeldLease):
        remedy = "end that one, or use another"
        raise FenceError(f"the incident store {store.name} is in use by another job ({lease.holder}): {remedy}")
    with LeaseKeeper(store, lease).keeping() as keeper:
        yield keeper


def refuse_lost_store(path: Path | None, checkpoint: Path) -> None:
    """Raise FenceError when `checkpoint` was used with a store and there is none at `path`: opening it would create an empty
    one."""
    if path is None or path.exists() or done(LocalCheckpoint(checkpoint / QUERY)) < 0:
        return
    remedy = f"set the checkpoint aside (mv {checkpoint} {checkpoint}.old) and start again, which reads from where `start` says"
    raise FenceError(
        f"the incident store {path} is gone, and the checkpoint {checkpoint} belongs to it: put it back, or {remedy}"
    )


def alignment(store: Store, files: CheckpointFiles) -> Alignment:
    """Return how far `store` and the checkpoint have got. The query must not be running."""
    query_files = files.within(QUERY)
    query = query_of(query_files)
    last = store.last_batch(query) if query is not None else None
    return Alignment(
        query=query,
        planned=planned(query_files),
        done=done(query_files),
        belongs_to=_recorded_store(files),
        store=store.id,
        stored=last.batch if last is not None else -1,
        written_at=store.written_at(),
    )


def _admit(store: Store, files: CheckpointFiles, say: Callable[[str], None]) -> None:
    current = alignment(store, files)
    ruling = decide(current, files.location, str(store.path or store.name))
    if ruling.course is Course.REFUSE:
        raise FenceError(ruling.sentence)
    if ruling.course is Course.READ_AGAIN and current.query is not None:
        store.forget_batches(current.query, current.planned)
    if ruling.sentence:
        say(ruling.sentence)
    if current.belongs_to != store.id:
        files.write(MARK, dumps(_FenceMark(store.id)))


def _recorded_store(files: CheckpointFiles) -> str | None:
    with suppress(OSError, msgspec.MsgspecError):
        text = files.text(MARK)
        return None if text is None else loads(text, _FenceMark).store
    return None
