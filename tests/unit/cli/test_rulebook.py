from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.cli.rulebook import open_rulebook, with_roster, with_speakers
from engine.dsl import builtin_rules
from engine.errors import RulesError, UsageError
from engine.model.records import NOBODY, SPEAKS_FOR
from engine.model.rules import Plan

EMPTY = Plan((), (), (), ())

GOOD = """\
id: {id}
title: Something happened
status: experimental
severity: low
component: any
detection:
  it: {pattern}
  condition: it
entity: [cluster]
runbook:
  cause: It happened.
  impact: None.
  fix:
    - do: Nothing
tests:
  - log: "{pattern}"
    fires: {{}}
  - log: all is well
    silent: true
"""


def write(folder: Path, name: str, pattern: str = "the bell rang twice") -> Path:
    path = folder / f"{name}.yml"
    path.write_text(GOOD.format(id=name, pattern=pattern))
    return path


def test_a_users_rules_join_the_built_in_ones(tmp_path: Path) -> None:
    write(tmp_path, "bell-rang")
    builtin = open_rulebook(None).plan
    book = open_rulebook([Path("builtin"), tmp_path])
    assert book.diagnostics == ()
    assert set(book.plan.rules()) == {*builtin.rules(), "bell-rang"}


def test_a_users_rules_alone_still_read_every_layout(tmp_path: Path) -> None:
    write(tmp_path, "bell-rang")
    builtin, own = open_rulebook(None).plan, open_rulebook([tmp_path]).plan
    assert set(own.rules()) == {"bell-rang"}
    assert (own.formats, own.components) == (builtin.formats, builtin.components)


def test_a_wrong_file_is_told_and_the_others_are_used(tmp_path: Path) -> None:
    write(tmp_path, "bell-rang")
    wrong = [tmp_path / f"wrong-{n}.yml" for n in range(10)]
    for path in wrong:
        path.write_text("id: [not, an, id]\n")
    book = open_rulebook([tmp_path])
    assert {found.path for found in book.diagnostics} == {str(path) for path in wrong}
    assert set(book.left_out) == {str(path) for path in wrong}
    assert "bell-rang" in book.plan.rules()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    book = open_rulebook([Path("builtin"), tmp_path / "nowhere"])
    assert [found.path for found in book.diagnostics] == [str(tmp_path / "nowhere")]
    assert book.plan.rules()


def test_a_roster_reaches_the_plan() -> None:
    assert with_roster(EMPTY, "1, 2,3").context == {"brokers": "1,2,3"}
    assert with_roster(EMPTY, "") == EMPTY


@pytest.mark.parametrize("brokers", ["one,two", "1,,2", "1;2"])
def test_a_roster_is_a_list_of_broker_ids(brokers: str) -> None:
    with pytest.raises(UsageError, match="--roster takes broker ids"):
        with_roster(EMPTY, brokers)


def test_a_source_may_speak_for_components_that_there_are() -> None:
    plan = open_rulebook(None).plan
    assert with_speakers(plan, [{}, {SPEAKS_FOR: NOBODY}, {SPEAKS_FOR: "controller, broker 1"}]) is plan
    with pytest.raises(UsageError, match=r"there is no component `brocker` \(did you mean `broker`\?; known: .*`?streams"):
        with_speakers(plan, [{SPEAKS_FOR: "broker"}, {SPEAKS_FOR: "controller, brocker 1"}])


@pytest.mark.parametrize("where", ["empty", "device", "elsewhere", "pipe"])
def test_a_path_without_a_rule_is_no_empty_rulebook(tmp_path: Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "passwd").write_text("root:x:0:0\n")
    os.mkfifo(tmp_path / "pipe")
    path = Path("/dev/null") if where == "device" else tmp_path / where
    with pytest.raises(RulesError, match=r"there is no rule file at or under it \(looked for: \*\.yml") as error:
        open_rulebook([path])
    assert error.value.diagnostics[0].path == str(path)


def test_a_path_of_other_yaml_is_no_empty_rulebook(tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text("services: {web: {image: nginx}}\n")
    with pytest.raises(RulesError):
        open_rulebook([tmp_path])


def test_layouts_without_a_rule_are_no_empty_rulebook() -> None:
    with pytest.raises(UsageError, match="there is no rule to look for anything with"):
        open_rulebook([builtin_rules() / "formats"])


def test_a_path_without_a_rule_beside_others_is_said_and_the_others_are_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "bell-rang")
    book = open_rulebook([tmp_path, tmp_path / "empty"])
    assert set(book.plan.rules()) == {"bell-rang"}
    assert book.left_out == (str(tmp_path / "empty"),)
