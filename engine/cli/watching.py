"""Notice that files have changed, once they rest: while they differ between two looks they may still be written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.dsl.files import stamps

LOOK_EVERY_S = 2.0


class FileWatch:
    """Watches the files of `paths`, as the rule language collects them. They were read before, and may have changed since: the
    first look at which they rest reports them as changed.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, paths: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._paths, self._clock = paths, clock
        self._taken_stamps: Mapping[Path, tuple[int, int]] | None = None
        self._last_stamps = stamps(paths)
        self._looked_at_s = clock()

    def has_changed(self) -> bool:
        """Return whether the files differ from those that were taken last, and are the same as at the look before. A change is
        reported once. Looks every LOOK_EVERY_S at most."""
        if not self.is_due():
            return False
        self._looked_at_s = self._clock()
        previous, self._last_stamps = self._last_stamps, stamps(self._paths)
        if self._last_stamps == self._taken_stamps or self._last_stamps != previous:
            return False
        self._taken_stamps = self._last_stamps
        return True

    def is_due(self) -> bool:
        """Return whether the next look is due."""
        return self._clock() - self._looked_at_s >= LOOK_EVERY_S

    def is_at_rest(self) -> bool:
        """Return whether the files were at the last look as they were taken."""
        return self._last_stamps == self._taken_stamps

    def take(self) -> None:
        """Take the files as they are now."""
        self._taken_stamps = self._last_stamps = stamps(self._paths)
