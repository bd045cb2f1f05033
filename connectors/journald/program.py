"""Run journalctl: once over the present entries, or following new ones. It needs the files of the journal and no daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from connectors.journald.entries import FIELDS, JournalEntry, entry_of
from engine.errors import SourceAway, SourceDenied, SourceError

PROGRAM = "journalctl"
JOURNAL = "the journal"
PENDING = 200_000  # most entries in memory that are not planned yet
PATIENCE_S = 30.0
_DENIED = ("insufficient permissions", "Permission denied", "not seeing messages from other users")
_GRANT = "members of the group systemd-journal may: add the user to it (usermod -aG systemd-journal USER) and start again"


def newest(root: str) -> JournalEntry | None:
    """Return the newest entry of the journal that this user may read; None when there is none. Raises SourceError as
    `printed`."""
    with printed(root, "--lines=1") as rows:
        return next((entry for row in rows if (entry := entry_of(row)) is not None), None)


def hidden(root: str) -> SourceDenied | None:
    """Return the error for entries of the system or other users that this user may not read; None when it may read all. Raises
    SourceError as `printed`."""
    with tempfile.TemporaryFile() as complaints:
        process = _started(root, ("--lines=1",), complaints)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise SourceAway(JOURNAL, f"journalctl did not end within {PATIENCE_S:.0f} s") from None
        finally:
            _end(process)
        error = _refusal(process.returncode, _text_of(complaints))
    if error is not None and not isinstance(error, SourceDenied):
        raise error
    return error


@contextmanager
def printed(root: str, *arguments: str) -> Iterator[Iterator[bytes]]:
    """Run journalctl and provide an iterator over its rows; leaving the block ends it.

    Raises SourceError when the program is not installed, SourceDenied or SourceAway when it fails before its last row.
    """
    with tempfile.TemporaryFile() as complaints:
        process = _started(root, arguments, complaints)
        try:
            yield _rows(process, complaints)
        finally:
            _end(process)


class Follower:
    """Follows the journal from a position: a process, and a thread that collects its entries.

    Args:
        target: the cursor of the newest entry at this time, which `await_target` waits for; empty: it does not wait.
        passed: the cursor of an entry that is skipped if it is the first; empty: none is skipped.
        arguments: the position to begin at, as arguments of journalctl.
    """

    def __init__(self, root: str, target: str, passed: str, *arguments: str) -> None:
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        try:
            self._process = _started(root, ("--follow", "--no-tail", *arguments), self._complaints)
        except SourceError:
            self._complaints.close()
            raise
        self._pending: deque[JournalEntry] = deque()
        self._changed = threading.Condition()
        self._target, self._passed = target, passed
        self._reached, self._ended = not target, False
        self._thread = threading.Thread(target=self._collect, name="journal", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, _kill, self._process)  # also when the interpreter ends

    def await_target(self, most: int | None) -> None:
        """Wait until the target has arrived, or `most` entries are pending. Raises SourceAway when the program ends, or prints
        nothing for PATIENCE_S."""
        with self._changed:
            counted, until = -1, time.monotonic() + PATIENCE_S
            while not self._reached and len(self._pending) < min(most or PENDING, PENDING):
                if self._ended:
                    raise self._failure()
                if len(self._pending) > counted:
                    counted, until = len(self._pending), time.monotonic() + PATIENCE_S
                if not self._changed.wait(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                    raise SourceAway(JOURNAL, f"journalctl printed nothing for {PATIENCE_S:.0f} s, and not {self._target}")

    def take(self, most: int | None, last: str = "") -> list[JournalEntry]:
        """Remove and return the next entries, in order: at most `most` (None: all), up to the one with the cursor `last`.
        Raises SourceAway when none is pending and the program has ended."""
        entries: list[JournalEntry] = []
        with self._changed:
            if not self._pending and self._ended:
                raise self._failure()
            while self._pending and (most is None or len(entries) < most):
                entries.append(self._pending.popleft())
                if entries[-1].cursor == last:
                    break
            self._changed.notify_all()
        return entries

    @property
    def is_behind(self) -> bool:
        """Whether more entries follow those that `take` has returned."""
        with self._changed:
            return bool(self._pending) or not self._reached

    def close(self) -> None:
        """End the program."""
        self._finalizer()
        with self._changed:
            self._pending.clear()
            self._changed.notify_all()
        self._thread.join(PATIENCE_S)
        _end(self._process)
        self._complaints.close()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for number, row in enumerate(self._process.stdout):
            entry = entry_of(row)
            with self._changed:
                while len(self._pending) >= PENDING and self._process.poll() is None:
                    self._changed.wait(1.0)
                if entry is not None:
                    if number or entry.cursor != self._passed:
                        self._pending.append(entry)
                    self._reached = self._reached or entry.cursor == self._target
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _failure(self) -> SourceAway:
        error = _refusal(self._process.wait(PATIENCE_S), _text_of(self._complaints))
        return SourceAway(JOURNAL, str(error or "journalctl has ended"))


def _started(root: str, arguments: tuple[str, ...], complaints: IO[bytes] | int) -> subprocess.Popen[bytes]:
    if (program := shutil.which(PROGRAM)) is None:
        raise SourceError(
            f"{JOURNAL}: there is no program {PROGRAM} here; it comes with systemd. In a container, install the package "
            "systemd and mount the journal (root: /host/var/log/journal), or read the logs as files"
        )
    place = (f"--directory={root}",) if root else ()
    fields = f"--output-fields={','.join(FIELDS)},CONTAINER_PARTIAL_MESSAGE,_LINE_BREAK"
    command = [
        program,
        "--output=json",
        "--all",
        "--no-pager",
        fields,
        *place,
        *arguments,
    ]  # without --all, long fields are null
    try:
        return subprocess.Popen(  # noqa: S603  (no shell; every path is an argument by itself)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise SourceAway(JOURNAL, f"{program} cannot be run ({error.strerror})") from error


def _rows(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    yield from process.stdout
    error = _refusal(process.wait(), _text_of(complaints))
    if error is not None and process.returncode:
        raise error


def _refusal(code: int, complaint: str) -> SourceError | None:
    """Return the error for the exit code and the stderr of journalctl; None when it neither failed nor lacked a permission."""
    if any(sign in complaint for sign in _DENIED):
        return SourceDenied(f"{JOURNAL}: no permission to read all of it; {_GRANT}")
    if code == 0:
        return None
    why = " ".join(complaint.split())[-500:] or "no message"
    return SourceAway(JOURNAL, f"journalctl ended with {code}: {why}")


def _text_of(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    return complaints.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    if process.stdout is not None:
        process.stdout.close()
