"""Reserve a checkpoint and an incident store for one job at a time, and notice when either is removed or replaced.

A store on a server is held by a lease (engine/store/leases.py), files by locks. The lock of the checkpoint lies in its folder,
so the folder is the same one as long as the lock file is.
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

    def __init__(self, store: Store, checkpoint: Path, lock: ProcessLock, keeper: LeaseKeeper | None = None) -> None:
        self.store = store if keeper is None else store.fenced_by(keeper.lease)
        self._checkpoint, self._lock, self._keeper = checkpoint, lock, keeper
        self._has_query = query_of(checkpoint / QUERY) is not None

    def check(self) -> None:
        """Raise StoreLost or FenceError when the store or the checkpoint was removed or replaced since the job began, and
        LeaseLost when another job has taken over.

        Costs a few calls of `stat`.
        """
        self.store.check_file()
        if self._keeper is not None:
            self._keeper.check()
        exists = (self._checkpoint / QUERY / "metadata").exists()
        if not self._lock.in_place() or (self._has_query and not exists):
            remedy = "start again: sources are read from where `start` says, and the incidents in the store stay"
            raise FenceError(f"the checkpoint {self._checkpoint} was removed or replaced while the job was running; {remedy}")
        self._has_query = self._has_query or exists


@contextmanager
def fenced(store: Store, checkpoint: Path, say: Say, pause: Callable[[float], object] = time.sleep) -> Iterator[Fence]:
    """Hold `store` and `checkpoint` for this process, after checking that they belong together; `say` takes a sentence about
    it. A store that is a file is held by a lock, one on a server by a lease, which is waited for while the server is away.

    Args:
        pause: waits for a number of seconds; a true result means that a stop was requested, and StoreAway is raised.

    Raises FenceError, which says what to do, when another job holds one of them or they do not belong together; OSError when
    the checkpoint cannot be written to.
    """
    locks: list[ProcessLock] = []
    stack = ExitStack()
    try:
        if store.path is not None:
            locks.append(ProcessLock(store.path.with_name(f"{store.path.name}.lock"), f"the incident store {store.path}"))
        locks.append(ProcessLock(checkpoint / LOCK, f"the checkpoint {checkpoint}"))
        keeper = stack.enter_context(_leased(store, say, pause)) if store.is_on_a_server else None
        until_back(lambda: _admit(store, checkpoint, say), pause, say)
        yield Fence(store, checkpoint, locks[-1], keeper)
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
