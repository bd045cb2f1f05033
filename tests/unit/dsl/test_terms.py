"""Terms stand for their texts."""

from __future__ import annotations

from pathlib import Path

from engine.dsl import load
from engine.match.matcher import Matcher
from tests.building import event
from tests.unit.dsl.writing import rule, write


def test_terms_stand_for_their_texts_with_any_modifier(tmp_path: Path) -> None:
    (tmp_path / "_terms.yml").write_text("lost: ['gone {n:int}', away]\nlevels: ERROR\n")
    body = "detection: {seen: {text|term: lost, level|contains|term: levels}, condition: seen}"
    matcher = Matcher(load([write(tmp_path, one=rule("one", body))]))
    said = [("gone 3", "ERROR"), ("away", "ERROR"), ("away", "INFO"), ("lost", "ERROR")]
    assert [bool(matcher.match_event(event(text, level=level))) for text, level in said] == [True, True, False, False]
