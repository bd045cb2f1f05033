"""Checks of rules among each other."""

from __future__ import annotations

from pathlib import Path

from engine.dsl import load, load_pack
from engine.model.rules import Hole
from tests.unit.dsl.writing import SEEN, codes, rule, write


def test_templates_may_use_what_an_explained_rule_captures(folder: Path) -> None:
    explains = "explains: [{rules: [seen-once], by: {broker: topic}}]"
    write(folder, cause=rule("cause", f"{SEEN}\n{explains}", title="{topic} lost {size:human} since {first_seen}"))
    title = load([folder]).rules()["cause"].title
    assert [part.source for part in title.parts if isinstance(part, Hole)] == ["{topic}", "{size:human}", "{first_seen}"]


def test_a_circle_over_three_rules_is_told_once(tmp_path: Path) -> None:
    chain = {"a1": "b1", "b1": "c1", "c1": "a1", "d1": "a1"}
    texts = {me: rule(me, f"{SEEN}\nexplains: [{{rules: [{it}], by: [topic]}}]") for me, it in chain.items()}
    found = load_pack([write(tmp_path, **texts)]).errors()
    assert codes(found) == ["TOC503"]
    assert "a1 -> b1 -> c1 -> a1" in found[0].message
