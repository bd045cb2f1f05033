"""When a run works, when a part of it hangs, and when its store is away."""

from __future__ import annotations

import pytest

from engine.errors import StoreError
from engine.metrics.health import JOB_SILENT_S, NOTIFIER_SILENT_S, Health, SignsOfLife, hangs


@pytest.mark.parametrize(
    ("signs", "now_s", "sentences"),
    [
        (SignsOfLife(0, 0), NOTIFIER_SILENT_S, []),
        (SignsOfLife(0, 100), JOB_SILENT_S, ["the notifier has not looked at the store for 3 min 20 s"]),
        (SignsOfLife(0, 400), 400, ["the job has stored no batch for 6 min 40 s"]),
        (
            SignsOfLife(0, 0),
            7200,
            ["the job has stored no batch for 2 h", "the notifier has not looked at the store for 2 h"],
        ),
    ],
)
def test_a_part_without_a_sign_of_life_for_too_long_hangs(signs: SignsOfLife, now_s: float, sentences: list[str]) -> None:
    assert hangs(signs, now_s) == sentences


def test_a_store_that_cannot_be_read_is_a_problem_and_no_hang() -> None:
    def away() -> None:
        raise StoreError("the store is away")

    health = Health(away, monotonic_s=lambda: 0.0)
    assert health.problems() == ["the store is away"]
    assert health.hangs() == []


def test_signs_of_life_end_a_hang() -> None:
    times = [0.0]
    health = Health(lambda: None, monotonic_s=lambda: times[0])
    times[0] = 1000.0
    assert len(health.problems()) == 2
    health.job_works()
    assert [sentence for sentence in health.problems() if "job" in sentence] == []
    health.notifier_works()
    assert health.problems() == []


def test_a_part_of_another_process_is_not_judged() -> None:
    times = [0.0]
    health = Health(lambda: None, has_job=False, monotonic_s=lambda: times[0])
    times[0] = 1000.0
    assert health.problems() == ["the notifier has not looked at the store for 16 min 40 s"]
