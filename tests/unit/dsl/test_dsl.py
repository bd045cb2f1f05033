"""What callers of engine.dsl rely on: plans, the cache, overrides, checks between rules."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.codec import dumps, loads
from engine.dsl import Override, lint, load, load_cached, load_pack, load_tests
from engine.errors import RulesError, UsageError
from engine.match.matcher import Matcher
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.rules import Clear, Hole, Item, Plan, Sooner, Stop
from tests.building import contains, event
from tests.unit.dsl.writing import SEEN, codes, rule, write

COUNTED = """\
correlation:
  type: event_count
  rules: [seen-once]
  group-by: [cluster, topic]
  timespan: 10m
  condition: {gte: 4, lt: 9}
"""
SILENT = """\
correlation:
  type: absence
  of: broker
  group-by: {broker: broker}
  timespan: heartbeat
  sooner: {rules: [seen-once], naming: {broker: topic}, timespan: 90s}
  unless: {rules: [seen-once]}
"""
WITH_TOPIC = 'detection: {seen: "something bad in {topic}, {size:bytes} bytes", condition: seen}\nentity: [topic]'
BROKER = """\
name: broker
label: broker
names: ['[KafkaServer id={member:int}]']
heartbeats: [{log: 'Removed {n:int} offsets', every: 10m}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "broker.yml").write_text(BROKER)
    return write(tmp_path, seen_once=rule("seen-once", WITH_TOPIC), many=rule("many", COUNTED), gone=rule("gone", SILENT))


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


def test_a_plan_survives_its_way_through_json(folder: Path) -> None:
    plan = load([folder])
    assert loads(dumps(plan), Plan) == plan


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


def test_overrides_disable_weigh_and_label(folder: Path) -> None:
    plan = load([folder], {"many": Override(disabled=True), "seen-once": Override(severity="low", labels={"team": "data"})})
    assert "many" not in plan.rules()
    assert (plan.rules()["seen-once"].severity, plan.rules()["seen-once"].labels) == ("low", {"team": "data"})
    assert plan.hash != load([folder]).hash


@pytest.mark.parametrize("overrides", [{"no-such-rule": Override()}, {"many": Override(severity="huge")}])
def test_a_wrong_override_is_told(folder: Path, overrides: dict[str, Override]) -> None:
    with pytest.raises(UsageError, match="overrides"):
        load([folder], overrides)


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


def test_an_override_excepts_what_is_known_and_only_that(folder: Path) -> None:
    known = Item("except", ((contains("in scratch"),),))
    change = Override(exceptions=known, unless=Binary("<", NameExpression("size"), Literal(100)))
    (matcher,) = (Matcher(load([folder], {"seen-once": change})),)
    lines = ["something bad in orders, 500 bytes", "something bad in scratch, 500 bytes", "something bad in orders, 99 bytes"]
    found = [bool(matcher.match_event(event(line))) for line in lines]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("id", "change", "said"),
    [
        ("many", Override(unless=Literal(True)), "except lines from many, which counts other rules"),
        ("seen-once", Override(unless=NameExpression("colour")), "look at what seen-once does not capture: colour"),
    ],
)
def test_an_exception_that_cannot_work_is_told(folder: Path, id: str, change: Override, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load([folder], {id: change})


def test_an_override_follows_a_rule_that_was_renamed(folder: Path) -> None:
    write(folder, seen_twice=rule("seen-twice", f"{WITH_TOPIC}\nreplaces: [seen-before]"))
    plan = load([folder], {"seen-before": Override(severity="low")})
    assert plan.rules()["seen-twice"].severity == "low"
    write(folder, seen_before=rule("seen-before", WITH_TOPIC))
    assert "TOC501" in codes(lint([folder]))


def test_terms_stand_for_their_texts_with_any_modifier(tmp_path: Path) -> None:
    (tmp_path / "_terms.yml").write_text("lost: ['gone {n:int}', away]\nlevels: ERROR\n")
    body = "detection: {seen: {text|term: lost, level|contains|term: levels}, condition: seen}"
    matcher = Matcher(load([write(tmp_path, one=rule("one", body))]))
    said = [("gone 3", "ERROR"), ("away", "ERROR"), ("away", "INFO"), ("lost", "ERROR")]
    assert [bool(matcher.match_event(event(text, level=level))) for text, level in said] == [True, True, False, False]


def test_packs_of_several_folders_are_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, **{name: rule(name)})
        (tmp_path / name / "_terms.yml").write_text(f"term_of_{name}: text\n")
    assert sorted(load([tmp_path / "one", tmp_path / "two"]).rules()) == ["one", "two"]
    (tmp_path / "two" / "_terms.yml").write_text("term_of_one: text\n")
    assert codes(load_pack([tmp_path / "one", tmp_path / "two"]).errors()) == ["TOC501"]
