"""Files beside the shipped ones are compiled alone, and nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine.dsl
import engine.dsl.pack
from engine.dsl import load, load_cached, load_pack, load_tests
from engine.errors import RulesError
from tests.unit.dsl.writing import SEEN, rule, write

SHIPPED = {
    "lost": rule(
        "lost",
        'detection: {seen: "lost {topic}, {size:bytes} bytes", code: {text|term: codes}, condition: seen and code}\n'
        "entity: [topic]\nlabels: {team: data}\n"
        'tests: [{log: "lost t1, 2 bytes E1", fires: {topic: t1}}]',
    ),
    "stopped": rule(
        "stopped",
        'detection: {seen: "stopped {node:int}", condition: seen}\nreplaces: [ended]\n'
        "explains: [{rules: [lost], by: [topic], scope_wide: true}]\nentity: [topic]",
    ),
    "often": rule(
        "often",
        "correlation: {type: event_count, rules: [lost], group-by: [topic], timespan: 5m, condition: {gte: 3}}",
    ),
}
COMPONENT = "name: {name}\nlabel: {name}\nnames: ['[{name} id={{member:int}}]']\n"
FORMAT = """\
name: {name}
rank: 5
header: '^(?P<time>\\S+) (?P<shelf>\\w+) (?P<message>.*)'
time: iso
examples: ['2022-10-05T17:05:00Z a b']
"""
OWN = {
    "a signature": {"own": rule("own", SEEN)},
    "one over shipped ones, with their captures": {
        "own": rule(
            "own", f"{SEEN}\nexplains: [{{rules: [often, stopped], by: [topic]}}]", title="{topic}, {size:human}, {node}"
        )
    },
    "one that continues a shipped one": {
        "own": rule("own", f"{SEEN}\ncontinues: [{{rule: lost, by: [topic], within: 1h}}]", title="{topic}")
    },
    "counts of a shipped correlation": {
        "own": rule("own", "correlation: {type: temporal_ordered, rules: [often, stopped], group-by: [topic], timespan: 5m}")
    },
    "a value of shipped captures": {
        "own": rule(
            "own",
            "correlation: {type: value_count, rules: [lost], group-by: [cluster], timespan: 5m, "
            "condition: {field: topic, gte: 2}}",
        )
    },
    "a shipped term": {"own": rule("own", "detection: {seen: {text|term: codes}, condition: seen}")},
    "a component and a format with labels": {
        "own": rule("own", SEEN, title="{shelf} of {app}"),
        "components/app": COMPONENT.format(name="app") + "unless: broker\n",
        "formats/row": FORMAT.format(name="row"),
    },
    "a shipped label": {"own": rule("own", f"{SEEN}\nentity: [broker]", title="{broker}")},
    "two that know each other": {
        "own": rule("own", f"{SEEN}\nexplains: [{{rules: [other], by: [topic]}}]\nentity: [topic]\nlabels: {{topic: a}}"),
        "other": rule("other", 'detection: {seen: "other {topic}", condition: seen}\nentity: [topic]'),
    },
}
WRONG = {
    "no YAML": {"own": "id: ["},
    "a rule that there is not": {"own": rule("own", f"{SEEN}\nexplains: [{{rules: [nobody], by: [topic]}}]")},
    "what a shipped rule does not capture": {
        "own": rule("own", f"{SEEN}\nexplains: [{{rules: [lost], by: {{topic: other}}}}]")
    },
    "what nobody captures": {"own": rule("own", SEEN, title="{nothing}")},
    "a correlation where lines are expected": {
        "own": rule("own", "correlation: {type: pair, open: [lost], expect: [often], group-by: [topic], within: 5m}")
    },
    "a circle of its own": {
        "own": rule("own", f"{SEEN}\nexplains: [{{rules: [other], by: [topic]}}]\nentity: [topic]"),
        "other": rule("other", f"{SEEN}\nexplains: [{{rules: [own], by: [topic]}}]\nentity: [topic]"),
    },
    "the id of a shipped rule": {"lost": rule("lost", SEEN)},
    "an id that a shipped rule replaces": {"ended": rule("ended", SEEN)},
    "a shipped id replaced": {"own": rule("own", f"{SEEN}\nreplaces: [lost]")},
    "a component of the same name": {"own": rule("own", SEEN), "components/broker": COMPONENT.format(name="broker")},
    "a format of the same name": {"own": rule("own", SEEN), "formats/line": FORMAT.format(name="line")},
    "a shipped term once more": {"own": rule("own", SEEN), "_terms": "codes: [F1]\n"},
}


def written(folder: Path, texts: dict[str, str]) -> Path:
    """Write files by their names without suffix, with the folders they are in, and return the folder."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of rules that counts as the shipped one."""
    folder = written(
        tmp_path / "shipped",
        {
            "components/broker": COMPONENT.format(name="broker"),
            "formats/line": FORMAT.format(name="line"),
            "_terms": "codes: [E1]\n",
        },
    )
    monkeypatch.setattr(engine.dsl, "builtin_rules", lambda: folder)
    return write(folder, **SHIPPED)


@pytest.mark.parametrize("texts", OWN.values(), ids=OWN)
def test_it_is_what_all_together_are(shipped: Path, tmp_path: Path, texts: dict[str, str]) -> None:
    paths, cache = [shipped, written(tmp_path / "own", texts)], tmp_path / "cache"
    assert load_cached(paths, cache) == load(paths) == load_cached(paths, cache)
    assert load_tests(paths, cache) == load_pack(paths).tests


@pytest.mark.parametrize("texts", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_as_for_all_together(shipped: Path, tmp_path: Path, texts: dict[str, str]) -> None:
    paths = [shipped, written(tmp_path / "own", texts)]
    with pytest.raises(RulesError) as together:
        load(paths)
    with pytest.raises(RulesError) as beside:
        load_cached(paths, tmp_path / "cache")
    assert beside.value.diagnostics == together.value.diagnostics


def test_a_term_of_ones_own_is_known(shipped: Path, tmp_path: Path) -> None:
    own = {"own": rule("own", "detection: {seen: {text|term: [mine, codes]}, condition: seen}"), "_terms": "mine: [F1]\n"}
    paths = [shipped, written(tmp_path / "own", own)]
    assert load_cached(paths, tmp_path / "cache") == load(paths)


def test_shipped_rules_are_not_compiled_again(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, cache = written(tmp_path / "own", {"own": rule("own", SEEN)}), tmp_path / "cache"
    load_cached([shipped, own], cache)
    read: list[str] = []
    first_pass = engine.dsl.pack._first_pass

    def noting(source: object, terms: object) -> object:
        read.append(source.path.stem)  # type: ignore[attr-defined]
        return first_pass(source, terms)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.dsl.pack, "_first_pass", noting)
    written(own, {"own": rule("own", SEEN, severity="low")})
    assert load_cached([shipped, own], cache).rules()["own"].severity == "low"
    assert read == ["_terms", "own"]


def test_files_can_be_left_out(shipped: Path, tmp_path: Path) -> None:
    own = written(tmp_path / "own", {"own": rule("own", SEEN), "wrong": "id: ["})
    plan = load_cached([shipped, own], tmp_path / "cache", without=[str(own / "wrong.yml")])
    assert {*plan.rules()} == {*SHIPPED, "own"}
