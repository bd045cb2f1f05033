"""The CPU time of a process and of everything it started: driver, JVM, Python workers. Read from /proc, so Linux only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLED_EVERY_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _SESSION, _STARTED = 1, 3, 19  # fields of /proc/<pid>/stat, counted from the one after the name
_TIMES = slice(11, 15)  # its own in user and system mode, and those of the children it was told the end of
_NOT_TOLD = 1 << (signal.SIGCHLD - 1)


class Session:
    """A running command of this Python in a session of its own: the session tells what belongs to it, whoever started it.

    A process that has ended is part of what its parent used, if that waits for its children. Else, as with Spark's Python
    daemon, it counts with what it had used when it was last looked at.
    """

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self._used: dict[tuple[int, int], tuple[float, int]] = {}  # by pid and start: the seconds, and the parent
        self._ended_s = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._sampling = threading.Thread(target=self._sample, daemon=True)
        self._sampling.start()

    def cpu_seconds(self) -> float:
        """Return the user and system time that everything in the session has used so far."""
        with self._lock:
            now = dict(self._looked())
            pids = {pid for pid, _ in now}
            ended = [self._used[each] for each in self._used.keys() - now.keys()]
            self._ended_s += sum(used for used, parent in ended if parent not in pids or not _waits(parent))
            self._used = now
            return self._ended_s + sum(used for used, _ in now.values())

    def said(self) -> Iterator[str]:
        """Yield the lines of its standard error as they come, until it ends."""
        assert self.process.stderr is not None
        yield from (line.rstrip("\n") for line in self.process.stderr)

    def end(self, within_s: float = 60) -> None:
        """End it as an operator does, and be sure."""
        self.process.terminate()
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        finally:
            self._ended.set()
            self._sampling.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLED_EVERY_S):
            self.cpu_seconds()

    def _looked(self) -> Iterator[tuple[tuple[int, int], tuple[float, int]]]:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended since
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[_SESSION]) == self.process.pid:
                    used = sum(map(int, fields[_TIMES])) / _TICKS
                    yield (int(stat.parent.name), int(fields[_STARTED])), (used, int(fields[_PARENT]))


def _waits(pid: int) -> bool:
    """Return whether a process is told of the end of its children, whose times the system then adds to its own."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        return not int(status.partition("SigIgn:")[2].split()[0], 16) & _NOT_TOLD
    return False


@contextmanager
def tocsin(*arguments: object) -> Iterator[Session]:
    """Give a running `tocsin`, which is over when the block is."""
    with running("engine.cli.main", *arguments) as session:
        yield session


@contextmanager
def running(module: object, *arguments: object) -> Iterator[Session]:
    """Give a running Python module, which is over when the block is."""
    session = Session(module, *arguments)
    try:
        yield session
    finally:
        session.end()
