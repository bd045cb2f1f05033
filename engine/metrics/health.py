"""Whether the parts of a run work. Pure but for the times that the parts report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from msgspec import Struct

from engine.errors import StoreError
from engine.model.phrases import lasting

JOB_SILENT_S = 300.0  # as long as a batch may take before the operator is warned
NOTIFIER_SILENT_S = 120.0  # its loop steps every second; a locked store may hold a step up


class SignsOfLife(Struct, frozen=True):
    """The last signs of life, in seconds of a monotonic clock: of the job a stored batch, of the notifier a step of its loop,
    of both an attempt that ended because the store is away: a restart does not mend that.

    Before the first sign it is the time of the start. None for a part that is not in this process.
    """

    job_s: float | None
    notifier_s: float | None


def hangs(signs: SignsOfLife, now_s: float) -> Sequence[str]:
    """Return a sentence for each part that gave no sign of life for too long; a restart of the process is the remedy."""
    parts = (
        ("the job has stored no batch", signs.job_s, JOB_SILENT_S),
        ("the notifier has not looked at the store", signs.notifier_s, NOTIFIER_SILENT_S),
    )
    return [
        f"{what} for {lasting(timedelta(seconds=round(now_s - last_s)))}"
        for what, last_s, bound_s in parts
        if last_s is not None and now_s - last_s > bound_s
    ]


class Health:
    """The health of a run: the parts report signs of life, and /healthz, /readyz and the heartbeat ask.

    Args:
        read_store: reads from the store; raises StoreError when that fails.
        has_job: the job is in this process.
        has_notifier: the notifier is in this process.
        monotonic_s: the clock.
    """

    def __init__(
        self,
        read_store: Callable[[], object],
        has_job: bool = True,
        has_notifier: bool = True,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_store, self._monotonic_s = read_store, monotonic_s
        self._job_s = monotonic_s() if has_job else None
        self._notifier_s = monotonic_s() if has_notifier else None

    def job_works(self) -> None:
        """Take a sign of life of the job."""
        if self._job_s is not None:
            self._job_s = self._monotonic_s()

    def notifier_works(self) -> None:
        """Take a sign of life of the notifier."""
        if self._notifier_s is not None:
            self._notifier_s = self._monotonic_s()

    def hangs(self) -> Sequence[str]:
        """Return a sentence for each part that hangs; empty while all work."""
        return hangs(SignsOfLife(self._job_s, self._notifier_s), self._monotonic_s())

    def problems(self) -> Sequence[str]:
        """Return a sentence for each part that hangs, and one for a store that cannot be read; empty while all work."""
        try:
            self._read_store()
        except StoreError as error:
            return [*self.hangs(), str(error)]
        return self.hangs()
