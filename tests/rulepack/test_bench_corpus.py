"""What is measured on is what it is said to be: rules know its hits, and nothing of its quiet lines."""

from __future__ import annotations

from random import Random

import pytest

from tests.bench.corpus import CONTINUED, HITS, QUIET, START, filled, stamped
from tests.rulepack.playing import plan
from tests.rulepack.reading import rules_of


@pytest.mark.parametrize(("templates", "known"), [(HITS, True), ((*QUIET, *CONTINUED), False)], ids=["hits", "quiet lines"])
def test_rules_know_the_hits_alone(templates: tuple[str, ...], known: bool) -> None:
    random = Random(1)
    texts = {template: (stamped(START, filled(template, random)), {}) for template in templates}
    assert [template for template, rules in rules_of(texts, plan()).items() if bool(rules) is not known] == []
