"""How often a batch that failed for a reason that passes by itself is tried again, and after which pauses."""

from __future__ import annotations

from engine.errors import SourceError
from engine.spark.failures import TOO_BUSY

TRIES = 5  # a source that is away was waited for in each of them
TRIES_WHEN_BUSY = 20
PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0  # a machine that is too busy gets busier by a new attempt at once


class Attempts:
    """Counts the attempts at one batch."""

    def __init__(self) -> None:
        self._failed, self._done = 0, -1

    def pause_s(self, why: str, done: int) -> float:
        """Return how long to wait before the next attempt, after one that failed for the reason `why`.

        Args:
            done: the last batch that was written; another one begins to count anew.

        Raises SourceError when there have been enough attempts.
        """
        self._failed, self._done = (self._failed + 1 if done == self._done else 1), done
        if self._failed >= (TRIES_WHEN_BUSY if why == TOO_BUSY else TRIES):
            raise SourceError(f"{why} (tried {self._failed} times)")
        return min(PAUSE_S * self._failed, LONGEST_PAUSE_S) if why == TOO_BUSY else 0.0
