"""One job at a time has a store and a checkpoint, and it notices when one of them is not there any more."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import FenceError, LeaseLost, StoreError, StoreLost
from engine.spark.fence import QUERY, ProcessLock, fenced, refuse_lost_store
from engine.store import Store, keeping, locks
from engine.store.keeping import this_process
from engine.store.leases import Lease
from engine.store.locks import lock_holder
from engine.store.store import BatchId
from tests.unit.store.test_leases import turn

if TYPE_CHECKING:
    from tests.servers.postgresql import PostgresServer

HOLDER = "import sys, time; from pathlib import Path; from engine.spark.fence import ProcessLock\n"
HOLDER += "ProcessLock(Path(sys.argv[1]), 'it'); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "state.checkpoint"


def read(checkpoint: Path, store: Store | None, last: int, query: str = "q") -> None:
    """Let `checkpoint`, and the store if there is one, have done the batches up to `last`."""
    folder = checkpoint / QUERY
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for batch in range(last + 1):
            (folder / name / str(batch)).touch()
    (folder / "metadata").write_text(json.dumps({"id": query}))
    for batch in range(last + 1) if store is not None else ():
        with store.batch(BatchId(query, batch)):
            pass


def entered(store: Store, checkpoint: Path) -> list[str]:
    said: list[str] = []
    with fenced(store, checkpoint, said.append):
        pass
    return said


def test_a_lock_is_held_by_a_process_and_ends_with_it_whatever_ends_that(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(FenceError, match=f"^it is in use by another job .process {other.pid}.: end that one"):
            ProcessLock(path, "it")
        other.kill()
    ProcessLock(path, "it").release()


def test_a_lock_on_a_shared_disk_names_the_machine_of_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(locks, "gethostname", lambda: "node-a")
    lock = ProcessLock(path, "it")
    monkeypatch.setattr(locks, "gethostname", lambda: "node-b")
    with pytest.raises(FenceError, match=f"^it is in use by another job .process {os.getpid()} on node-a.: end that one"):
        ProcessLock(path, "it")
    assert lock_holder(path) == f"process {os.getpid()} on node-a"
    lock.release()


def test_a_lock_that_the_file_system_does_not_give_is_not_held_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="it cannot be locked"):
        ProcessLock(tmp_path / "lock", "it")


def test_two_jobs_share_neither_store_nor_checkpoint(store: Store, checkpoint: Path, tmp_path: Path) -> None:
    another = Store.open(f"sqlite:///{tmp_path}/another.db")
    with fenced(store, checkpoint, print):
        with pytest.raises(FenceError, match=r"the incident store .*state\.db is in use"):
            entered(store, tmp_path / "another checkpoint")
        with pytest.raises(FenceError, match=r"the checkpoint .*state\.checkpoint is in use"):
            entered(another, checkpoint)
    assert entered(another, checkpoint) == []
    another.close()


def test_a_checkpoint_is_marked_with_its_store_and_refuses_another(store: Store, checkpoint: Path, tmp_path: Path) -> None:
    read(checkpoint, store, 3)
    assert entered(store, checkpoint) == entered(store, checkpoint) == []
    another = Store.open(f"sqlite:///{tmp_path}/another.db")
    read(checkpoint, another, 3)
    with pytest.raises(FenceError, match="belongs to another incident store"):
        entered(another, checkpoint)
    another.close()


def test_a_store_that_has_more_than_its_checkpoint_forgets_which_batches(store: Store, checkpoint: Path) -> None:
    read(checkpoint, store, 5)
    entered(store, checkpoint)
    shutil.rmtree(checkpoint / QUERY)
    read(checkpoint, None, 3)
    (said,) = entered(store, checkpoint)
    assert "the input of batches 4 to 5 is read again" in said
    assert [store.has_batch(BatchId("q", batch)) for batch in (3, 4, 5)] == [True, False, False]
    assert entered(store, checkpoint) == []


def test_a_store_or_checkpoint_that_goes_while_it_is_in_use_is_noticed(store: Store, checkpoint: Path, tmp_path: Path) -> None:
    with fenced(store, checkpoint, print) as fence:
        fence.check()
        read(checkpoint, store, 0)
        fence.check()
        (checkpoint / QUERY / "metadata").unlink()
        with pytest.raises(FenceError, match=r"state\.checkpoint was removed or replaced while the job was running"):
            fence.check()
    with fenced(store, checkpoint, print) as fence:
        checkpoint.rename(tmp_path / "aside")
        read(checkpoint, None, 0)
        with pytest.raises(FenceError, match="was removed or replaced"):
            fence.check()
    with fenced(store, tmp_path / "third", print) as fence:
        (tmp_path / "state.db").unlink()
        with pytest.raises(StoreLost, match=r"state\.db: the incident store was removed while it was in use"):
            fence.check()


def test_a_store_that_is_gone_is_not_made_anew_beside_a_checkpoint_that_was_used_with_it(
    checkpoint: Path, tmp_path: Path
) -> None:
    path = tmp_path / "gone.db"
    refuse_lost_store(path, checkpoint)
    read(checkpoint, None, 0)
    with pytest.raises(FenceError, match=r"gone\.db is gone, and the checkpoint .* belongs to it"):
        refuse_lost_store(path, checkpoint)
    path.touch()
    refuse_lost_store(path, checkpoint)


@pytest.mark.server
def test_a_job_on_a_server_store_names_the_other_job_and_notices_when_one_takes_over(
    postgresql: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "RENEW_EVERY_S", 1.0)
    address = postgresql.empty_store()
    store, other = Store.open(address), Store.open(address)
    with fenced(store, tmp_path / "one", print) as fence:
        fence.check()
        match = rf"^the incident store postgresql.*:\*\*\*@.* is in use by another job \({this_process()}\): end that one"
        with pytest.raises(FenceError, match=match):
            entered(other, tmp_path / "two")
        with fence.store.batch(BatchId("q", 0)):
            pass
        turn(other, 3600)
        assert isinstance(other.take_lease("job", "process 7 on node-b"), Lease)
        pause = threading.Event()
        with pytest.raises(LeaseLost, match="taken over by the job of process 7 on node-b"):
            for _ in range(3000):
                fence.check()
                pause.wait(0.02)
        with pytest.raises(LeaseLost), fence.store.batch(BatchId("q", 1)):
            pass
    assert store.batches() == 1
    assert store.take_lease("job", "c").holder != "c", "a job that lost its lease does not release that of another"
    store.close()
    other.close()


@pytest.mark.server
def test_a_job_waits_for_a_server_that_is_away_when_it_starts(postgresql: PostgresServer, tmp_path: Path) -> None:
    store, pauses = Store.open(postgresql.empty_store()), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        postgresql.start()

    postgresql.stop()
    with fenced(store, tmp_path / "one", print, pause) as fence:
        fence.check()
    assert len(pauses) == 1
    store.close()
