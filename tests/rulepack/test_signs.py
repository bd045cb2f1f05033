"""Hyperscan finds a sign of the shipped rules in every posted line in which RE2 finds one."""

from __future__ import annotations

from itertools import accumulate

import pytest

from engine.match.digits import ALIKE
from engine.match.matcher import matcher_of
from tests.corpus.cases import cases
from tests.rulepack.playing import plan

pytestmark = pytest.mark.slow

BATCH = 200


def test_hyperscan_loses_no_line_of_the_corpus() -> None:
    screen = matcher_of(plan()).screen()
    lines = {line: None for case in cases().values() for line in case.log.encode("ascii", "replace").splitlines()}
    lost = []
    distinct = [line.translate(ALIKE) + b"\n" for line in lines]
    for start in range(0, len(distinct), BATCH):
        texts = distinct[start : start + BATCH]
        begins = [*accumulate(map(len, texts), initial=0)][:-1]
        bearing = {number for number, _ in screen.bearing(b"".join(texts), begins)}
        lost += [text for number, text in enumerate(texts) if number not in bearing and screen.by_re2.Match(text)]
    assert screen.lost == 0
    assert lost == []
