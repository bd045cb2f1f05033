from __future__ import annotations

import pytest

from engine.dsl.quantities import count, duration_s, flag, versions


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("10m", 600), ("1.5h", 5400), ("3d", 259200), ("0s", 0), ("3650d", 315360000)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "-5m", "10min", "1h30m", "10M", "3651d", "999999999d"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        duration_s(text)


def test_version_ranges_are_bounds_that_must_all_hold() -> None:
    assert versions(">=2.1,<4.1") == ((">=", "2.1"), ("<", "4.1"))
    assert versions("= 0.10.2.1") == (("==", "0.10.2.1"),)


@pytest.mark.parametrize("text", ["", "2.1", ">=", ">=2.x", ">=2.1,", ">= 2.1 < 3"])
def test_anything_else_is_no_version_range(text: str) -> None:
    with pytest.raises(ValueError):
        versions(text)


def test_only_true_and_false_are_flags() -> None:
    assert flag("true") is True
    assert flag("false") is False
    for text in ("yes", "on", "True", "1", ""):
        with pytest.raises(ValueError):
            flag(text)


def test_counts_have_at_most_nineteen_digits() -> None:
    assert count("9" * 19) == int("9" * 19)
    for text in ("9" * 20, "-1", "1.0", "", "١"):
        with pytest.raises(ValueError):
            count(text)
