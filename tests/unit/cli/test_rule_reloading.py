"""Rule files that change while a job runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.cli.rule_reloading import RuleReloader
from engine.cli.watching import LOOK_EVERY_S
from engine.dsl import load

RULE = "id: {0}\ntitle: t\nseverity: info\ncomponent: any\ndetection: {{seen: something bad, condition: seen}}\n"


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.said = folder, 0.0, list[str]()
        self.write("first")
        self.asked = threading.Event()
        plan = load([folder])
        self.files = RuleReloader([folder], plan, lambda: load([folder]), self.said.append, lambda: self.now, self.asked)

    def write(self, name: str, text: str = RULE) -> None:
        (self.folder / f"{name}.yml").write_text(text.format(name))

    def rules(self) -> list[str] | None:
        """Look once more; return the rules of a new plan."""
        self.now += LOOK_EVERY_S
        plan = self.files.poll()
        return None if plan is None else sorted(plan.rules())


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_nothing_changed(watched: Watched) -> None:
    assert [watched.rules(), watched.rules()] == [None, None]


def test_a_new_file_is_taken_once_it_rests(watched: Watched) -> None:
    watched.write("second")
    assert watched.rules() is None, "it may still be written"
    assert watched.rules() == ["first", "second"]
    assert watched.rules() is None
    assert "2 signatures" in watched.said[0]


def test_what_changed_between_the_start_and_the_first_look_is_taken(watched: Watched) -> None:
    plan = load([watched.folder])
    watched.write("second")
    watched.files = RuleReloader(
        [watched.folder], plan, lambda: load([watched.folder]), watched.said.append, lambda: watched.now
    )
    assert [watched.rules(), watched.rules()] == [["first", "second"], None]


def test_it_is_not_looked_at_every_time(watched: Watched) -> None:
    watched.write("second")
    assert [watched.files.poll() for _ in range(9)] == [None] * 9
    assert watched.said == []


def test_a_broken_edit_is_said_once_with_its_place_and_mended_later(watched: Watched) -> None:
    watched.write("first", RULE.replace("info", "infos"))
    assert [watched.rules() for _ in range(4)] == [None] * 4
    assert "goes on with those before" in watched.said[0]
    assert "first.yml:3:11" in watched.said[1]
    assert len(watched.said) == 2
    watched.write("first", RULE.replace("info", "low") + "runbook: {{cause: c, impact: i}}\n")
    assert [watched.rules(), watched.rules()] == [None, ["first"]]


def test_touching_a_file_changes_nothing(watched: Watched) -> None:
    (watched.folder / "first.yml").touch()
    assert [watched.rules(), watched.rules()] == [None, None]
    assert watched.said == []


def test_a_folder_that_is_gone_keeps_the_rules(watched: Watched) -> None:
    (watched.folder / "first.yml").unlink()
    watched.folder.rmdir()
    assert [watched.rules(), watched.rules()] == [None, None]
    assert "goes on with those before" in watched.said[0]


def test_an_emptied_folder_keeps_the_rules_and_is_said_once(watched: Watched) -> None:
    (watched.folder / "first.yml").unlink()
    assert [watched.rules() for _ in range(4)] == [None] * 4
    assert "goes on with those before" in watched.said[0]
    assert "there is no rule file at or under it (looked for: *.yml and *.yaml" in watched.said[1]
    assert len(watched.said) == 2
    watched.write("second")
    assert [watched.rules(), watched.rules()] == [None, ["second"]]


def test_whoever_asks_has_the_rules_read_at_once_and_is_told_what_came_of_it(watched: Watched) -> None:
    watched.write("second")
    watched.asked.set()
    plan = watched.files.poll()
    assert plan is not None
    assert sorted(plan.rules()) == ["first", "second"]
    watched.asked.set()
    assert watched.files.poll() is None
    assert watched.said[1:] == ["the rules have been read again: none has changed"]
    watched.write("first", "id: [")
    watched.asked.set()
    assert watched.files.poll() is None
    assert "goes on with those before" in watched.said[2]
    assert watched.rules() is None
    assert len([said for said in watched.said if "goes on with those before" in said]) == 1
