"""Faults provoked on real clusters, and harmless events: the logs of all give one incident with the right root, or none.

`python -m tests.lab faults` provokes them anew and compares with the same `expected.yml`; `tests/lab/cutting.py` cut these
logs down.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rulepack.playing import play, story, unlike

CAPTURED = Path(__file__).parents[1] / "captured"
HISTORIES = sorted({log.parent for log in CAPTURED.glob("*/*.log")})


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda folder: folder.name)
def test_a_history_raises_exactly_what_it_should(folder: Path) -> None:
    assert unlike(play(story(folder)), folder) == []


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda folder: folder.name)
def test_the_order_of_files_makes_no_difference(folder: Path) -> None:
    assert unlike(play(story(folder).backwards()), folder) == []
