"""A batch is tried again for as long as its reason may pass."""

from __future__ import annotations

import pytest

from engine.errors import SourceError
from engine.spark.attempts import LONGEST_PAUSE_S, TRIES, TRIES_WHEN_BUSY, Attempts
from engine.spark.failures import TOO_BUSY


def test_a_source_that_is_away_was_waited_for_and_is_tried_at_once_a_few_times() -> None:
    attempts = Attempts()
    assert [attempts.pause_s("it is away", 3) for _ in range(TRIES - 1)] == [0.0] * (TRIES - 1)
    with pytest.raises(SourceError, match=rf"^it is away \(tried {TRIES} times\)$"):
        attempts.pause_s("it is away", 3)


def test_a_batch_that_was_written_begins_to_count_anew() -> None:
    attempts = Attempts()
    for done in range(3 * TRIES):
        assert attempts.pause_s("it is away", done) == 0.0


def test_a_machine_that_is_too_busy_is_left_alone_for_longer_and_longer() -> None:
    attempts = Attempts()
    pauses = [attempts.pause_s(TOO_BUSY, -1) for _ in range(TRIES_WHEN_BUSY - 1)]
    assert pauses[:4] == [2, 4, 6, 8]
    assert (max(pauses), sum(pauses) > 300) == (LONGEST_PAUSE_S, True)
    with pytest.raises(SourceError, match=rf"too busy .* \(tried {TRIES_WHEN_BUSY} times\)$"):
        attempts.pause_s(TOO_BUSY, -1)
