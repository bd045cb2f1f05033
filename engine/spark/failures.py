"""What the message of a query that failed means: whether that passes by itself, where it happened, and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir

from engine.errors import SourceError, TocsinError

_DISK = re.compile("No space left on device|Disk quota exceeded|Read-only file system|File too large")
_AWAY = re.compile(r"^engine\.errors\.SourceAway: (.+)$", re.MULTILINE)
TOO_BUSY = "the machine is too busy to start Python within the time that Spark gives it"
_BUSY = re.compile("Python worker failed to connect back")  # Spark allows ten seconds for it
_RAISED_IN_WORKER = re.compile(r"^engine\.errors\.\w+: (.+)$", re.MULTILINE)
_FAILED_TASK = re.compile(r"\(TID \d+\) \((\S+) executor (\w+)\)(?:: ([^\n]*))?")
_TRACEBACK = "Traceback (most recent call last):"


def transient_cause(failure: str, bounded: bool) -> str | None:
    """Return the cause of a query's `failure` when it passes by itself, else None. A bounded run waits for no source."""
    if _BUSY.search(failure):
        return TOO_BUSY
    reasons = [] if bounded else _AWAY.findall(failure)
    return str(reasons[-1]) if reasons else None


def job_error(failure: str, checkpoint: Path, log: Path) -> TocsinError:
    """Return the error to raise for a query that ended with the message `failure`: that of a tocsin error that was raised in a
    worker, else the cause as Spark names it, with the executor where it happened and the log to read.

    Args:
        checkpoint: the folder of the job on this machine.
    """
    if raised_in_worker := _RAISED_IN_WORKER.findall(failure):
        return SourceError(raised_in_worker[-1])
    task = failed_task(failure)
    if disk_error := _DISK.search(failure):
        if task is not None:
            return _cannot_go_on(f"{task[0]} cannot write to its disk", disk_error[0])
        # the state's working copy is in the temporary folder, and the message seldom says which of the two is full
        return cannot_write(min((checkpoint, Path(gettempdir())), key=lambda folder: disk_usage(folder).free), disk_error[0])
    cause = failure.strip().partition("\n")[0] if task is None else ": ".join(filter(None, task))
    return TocsinError(f"the Spark job failed: {cause} (see {log})")


def failed_task(failure: str) -> tuple[str, str] | None:
    """Return where the task failed that ended a query (`executor 1 on node-b`), and why; None when the message names no
    executor, or that of a local run. Pure."""
    tasks = list(_FAILED_TASK.finditer(failure))
    task = next((task for task in tasks if task[3]), tasks[0] if tasks else None)
    if task is None or task[2] == "driver":
        return None
    why = task[3] or ""
    if why.endswith(_TRACEBACK):  # the error is the first line behind it that is not indented
        lines = failure[task.end() :].split("\n")
        why = next((line for line in lines if line and not line.startswith((" ", "\t"))), why)
    return f"executor {task[2]} on {task[1]}", why.strip()


def cannot_write(folder: Path, why: str) -> TocsinError:
    """Return the error for a folder of this machine that cannot be written to."""
    return _cannot_go_on(f"the job cannot write to {folder}", why)


def _cannot_go_on(what: str, why: str) -> TocsinError:
    return TocsinError(f"{what}: {why}; mend that and start again: it goes on where it ended")
