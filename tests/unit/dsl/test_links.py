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


NODE = """\
name: node
label: node
names: ['[Node {member:int}]']
states:
  replaying:
    - begins: ['[Node {}] begun']
      ends: ['[Node {}] caught up', '[Node {}] active']
      at_most: 2m
"""


def test_a_rule_may_leave_out_what_a_source_prints_in_a_state(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    write(tmp_path / "components", node=NODE)
    write(tmp_path, lost=rule("lost", f"{SEEN}\nnot_during: [replaying]"))
    plan = load([tmp_path])
    (phase,) = plan.components[0].states["replaying"]
    assert ([test.value for test in phase.begins], len(phase.ends), phase.at_most_s) == (["[Node {}] begun"], 2, 120)
    assert plan.rules()["lost"].not_during == ("replaying",)


def test_a_state_that_no_component_declares_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    write(tmp_path / "components", node=NODE)
    write(tmp_path, lost=rule("lost", f"{SEEN}\nnot_during: [replayin]"))
    (finding,) = load_pack([tmp_path]).errors()
    assert (finding.code, finding.message) == ("TOC502", "there is no state `replayin`")
    assert "replaying" in finding.help


def test_a_state_needs_its_beginning_and_its_end(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    write(tmp_path / "components", node=NODE.replace("      ends: ['[Node {}] caught up', '[Node {}] active']\n", ""))
    (finding,) = load_pack([tmp_path]).errors()
    assert finding.code == "TOC202"
