"""What is measured on is what it is said to be: rules know its hits, and nothing of its quiet lines."""

from __future__ import annotations

from random import Random

import pytest

from engine.match.prefilter import Prefilter
from tests.bench.corpus import CONTINUED, HITS, IN_QUIET_LINES, QUIET, START, filled, stamped
from tests.rulepack.playing import plan
from tests.rulepack.reading import rules_of


@pytest.mark.parametrize(("templates", "known"), [(HITS, True), ((*QUIET, *CONTINUED), False)], ids=["hits", "quiet lines"])
def test_rules_know_the_hits_alone(templates: tuple[str, ...], known: bool) -> None:
    random = Random(1)
    texts = {template: (stamped(START, filled(template, random)), {}) for template in templates}
    assert [template for template, rules in rules_of(texts, plan()).items() if bool(rules) is not known] == []


def test_no_sign_of_a_rule_stands_in_a_quiet_line() -> None:
    """What bears a sign is decoded and matched, which costs a hundred times what leaving it out does."""
    random = Random(1)
    prefilter = Prefilter(sign for signature in plan().signatures for sign in signature.signs)
    texts = {template: stamped(START, filled(template, random)).encode() for template in QUIET}
    signs = {template: prefilter.signs_in(text) for template, text in texts.items()}
    assert {template: borne for template, borne in signs.items() if borne - IN_QUIET_LINES} == {}
