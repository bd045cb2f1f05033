"""The CPU time of a process and of everything it started: driver, JVM, Python workers. Read from /proc, so Linux only."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLED_EVERY_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_SESSION, _USER, _SYSTEM, _STARTED = 3, 11, 12, 19  # fields of /proc/<pid>/stat, counted from the one after the name


class Session:
    """A running command of this Python in a session of its own: the session tells what belongs to it, whoever started it.

    A process that has ended counts with what it had used when it was last looked at: Spark's Python daemon leaves nobody to
    ask afterwards.
    """

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self._used: dict[tuple[int, int], float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._sampling = threading.Thread(target=self._sample, daemon=True)
        self._sampling.start()

    def cpu_seconds(self) -> float:
        """Return the user and system time that everything in the session has used so far."""
        with self._lock:
            for stat in Path("/proc").glob("[0-9]*/stat"):
                with suppress(OSError):  # it has ended since
                    self._note(int(stat.parent.name), stat.read_text().rpartition(")")[2].split())
            return sum(self._used.values())

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

    def _note(self, pid: int, fields: list[str]) -> None:
        if int(fields[_SESSION]) == self.process.pid:
            used = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
            self._used[pid, int(fields[_STARTED])] = used


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
