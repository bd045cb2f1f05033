"""What callers of engine.dsl rely on: plans, the cache, overrides, checks between rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec import dumps, loads
from engine.dsl import lint, load, load_pack
from engine.errors import RulesError
from engine.match.matcher import Matcher
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.rules import Clear, Plan, Sooner, Stop
from tests.building import event
from tests.unit.dsl.writing import SEEN, codes, rule, write


def test_a_plan_holds_every_kind_of_file(folder: Path) -> None:
    plan = load([folder])
    assert [signature.rule.id for signature in plan.signatures] == ["seen-once"]
    assert [correlation.rule.id for correlation in plan.correlations] == ["gone", "many"]
    assert plan.components[0].heartbeats[0].every_s == 600
    assert plan.rules()["seen-once"].entity == {"topic": "topic"}


def test_a_count_compiles_its_limits_and_takes_over_the_captures_of_its_members(folder: Path) -> None:
    many = next(c for c in load([folder]).correlations if c.rule.id == "many")
    low, high = (Binary(op, NameExpression("count"), Literal(n)) for op, n in ((">=", 4), ("<", 9)))
    assert many.condition == Binary("and", low, high)
    assert many.rule.captures == {"topic": "word", "size": "bytes"}
    assert many.rule.clear == Clear(in_s=600)


def test_an_absence_compiles_what_makes_it_sooner(folder: Path) -> None:
    gone = next(c for c in load([folder]).correlations if c.rule.id == "gone")
    assert gone.absence is not None
    assert gone.timespan_s == 0
    assert gone.absence.sooner == Sooner(("seen-once",), {"broker": "topic"}, 90)
    assert gone.absence.unless == gone.absence.stop == Stop(("seen-once",), 120)


def test_every_error_of_every_file_is_told_at_once(folder: Path) -> None:
    write(folder, bad_one=rule("bad-one", "detection: {}", severity="hgih"), bad_two=rule("bad-two", "entity: [topik]"))
    with pytest.raises(RulesError) as caught:
        load([folder])
    assert {Path(found.path).name for found in caught.value.diagnostics} == {"bad-one.yml", "bad-two.yml"}
    assert len(caught.value.diagnostics) >= 4


def test_a_missing_folder_is_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="no such file"):
        load([tmp_path / "nowhere"])


def test_hidden_and_underscored_files_are_left_out(folder: Path) -> None:
    (folder / "_terms.yml").write_text("not: a rule")
    (folder / ".draft.yml").write_text("not: a rule")
    load([folder])


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    assert load([folder, folder / "seen-once.yml"]).rules().keys() == load([folder]).rules().keys()


def test_a_plan_survives_its_way_through_json(folder: Path) -> None:
    plan = load([folder])
    assert loads(dumps(plan), Plan) == plan


def test_the_plan_does_not_depend_on_the_order_of_folders(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = write(tmp_path_factory.mktemp("more"), extra=rule("extra"))
    assert load([folder, other]) == load([other, folder])


def test_loading_again_says_the_same_until_a_file_or_a_term_changes(folder: Path) -> None:
    write(folder, lost=rule("lost", SEEN + "\nrelated: [no-such-rule]\nstatus: wrong"))
    first = lint([folder])
    assert {"TOC204", "TOC502"} <= {found.code for found in first}, "of the file itself, and of what it is linked with"
    assert lint([folder]) == first
    write(folder, lost=rule("lost", "detection: {seen: {text|contains|term: bad}, condition: seen}"))
    for text in ("something worse", "something else"):
        (folder / "_terms.yml").write_text(f"bad: [{text}]\n")
        assert [match.rule_id for match in Matcher(load([folder])).match_event(event(text))] == ["lost"]


def test_packs_of_several_folders_are_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, **{name: rule(name)})
        (tmp_path / name / "_terms.yml").write_text(f"term_of_{name}: text\n")
    assert sorted(load([tmp_path / "one", tmp_path / "two"]).rules()) == ["one", "two"]
    (tmp_path / "two" / "_terms.yml").write_text("term_of_one: text\n")
    assert codes(load_pack([tmp_path / "one", tmp_path / "two"]).errors()) == ["TOC501"]
