"""The cache of compiled plans and tests: it answers as loading does, and its faults are no errors."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.dsl import load, load_cached, load_pack, load_tests
from engine.errors import RulesError
from tests.unit.dsl.writing import WITH_TOPIC, rule, write


def test_the_cache_answers_the_same_as_loading(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    assert load_cached([folder], cache) == load_cached([folder], cache) == load([folder])
    assert load_tests([folder], cache) == load_pack([folder]).tests
    assert len(list(cache.iterdir())) == 2


def test_tests_are_kept_as_plans_are(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    write(
        folder,
        seen_once=rule("seen-once", f'{WITH_TOPIC}\ntests: [{{log: "something bad in t1, 2 bytes", fires: {{topic: t1}}}}]'),
    )
    assert load_tests([folder], cache) == load_tests([folder], cache) == load_pack([folder]).tests
    assert load_tests([folder], cache)["seen-once"][0].fires == {"topic": "t1"}
    write(folder, seen_once=rule("seen-once", severity="hihg"))
    with pytest.raises(RulesError, match="hihg"):
        load_tests([folder], cache)


def test_a_changed_rule_is_compiled_anew(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    load_cached([folder], cache)
    write(folder, seen_once=rule("seen-once", WITH_TOPIC, severity="low"))
    assert load_cached([folder], cache).rules()["seen-once"].severity == "low"


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"hash": "x"}', "null"])
def test_a_damaged_cache_is_no_error(folder: Path, tmp_path_factory: pytest.TempPathFactory, damage: str) -> None:
    cache = tmp_path_factory.mktemp("cache")
    plan, tests = load_cached([folder], cache), load_tests([folder], cache)
    for file in cache.iterdir():
        file.write_text(damage)
    assert (load_tests([folder], cache), load_cached([folder], cache)) == (tests, plan)


def test_a_cache_that_cannot_be_written_is_no_error(folder: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    assert load_cached([folder], blocked / "cache") == load([folder])


def test_the_cache_keeps_only_the_newest_plans(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    for number in range(10):
        write(folder, seen_once=rule("seen-once", WITH_TOPIC, title=f"Title {number}"))
        load_cached([folder], cache)
    assert Counter(file.name.partition("-")[0] for file in cache.iterdir()) == {"plan": 8, "tests": 8}


def test_a_cached_plan_needs_no_compiler(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    load_cached([folder], cache)
    script = (
        "import sys; from pathlib import Path; from engine.dsl import load_cached; "
        f"load_cached([Path({str(folder)!r})], Path({str(cache)!r})); "
        "sys.exit(bool({'yaml', 'pydantic', 'pyparsing', 're2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[3]).returncode == 0
