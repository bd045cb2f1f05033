"""Signs of the shipped rules: Hyperscan and RE2 find the same in posted lines; each test that holds has one of its signs."""

from __future__ import annotations

from random import Random

import pytest

from engine.dsl.signs import DATA
from engine.match.checks import compile_check
from engine.match.detectors import every_test
from engine.match.fields import Fields
from engine.match.matcher import matcher_of
from engine.match.prefilter import Prefilter
from engine.model.signs import folded
from tests.building import event
from tests.corpus.cases import cases
from tests.rulepack.playing import plan
from tests.rulepack.quadgrams import counted, written

pytestmark = pytest.mark.slow
CASES = 60


def test_hyperscan_and_re2_find_the_same_in_the_corpus() -> None:
    signs = matcher_of(plan()).prefilter
    by_re2 = Prefilter(signs.signs, hyperscan=False)
    texts = {line.encode(): None for case in cases().values() for line in case.log.splitlines()}
    assert [text for text in texts if signs.signs_in(text) != by_re2.signs_in(text)] == []
    assert signs.lost == 0


def test_every_test_that_holds_has_a_sign_in_the_text() -> None:
    checks = [(test, compile_check(test)) for test in dict.fromkeys(every_test(plan())) if test.signs and test.field == "text"]
    for case in Random(1).sample(list(cases().values()), CASES):
        fields, text = Fields(event(case.log)), folded(case.log.encode("utf-8", "replace")).decode()
        wrong = [test for test, check in checks if check(fields) is not None and not any(sign in text for sign in test.signs)]
        assert wrong == []


def test_the_counts_of_good_logs_are_up_to_date() -> None:
    assert DATA.read_text(encoding="utf-8") == written(counted()), "python -m tests.rulepack.quadgrams writes them"
