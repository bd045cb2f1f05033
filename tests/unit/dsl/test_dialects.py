"""Files of rules/dialects: what is compiled of them, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.dsl import load, load_cached, load_pack
from engine.dsl.dialects import setting_levels
from tests.building import rule as built_rule
from tests.building import setting
from tests.unit.dsl.writing import rule, write

DIALECT = """\
name: own
label: Our client
lines: ['acme\\.Consumer']
spells: {consumer: "acme.{name}", client: "ACME_{NAME}"}
names: {group.id: acme.group}
absent: {max.poll.records: it takes one}
examples: [ERROR acme.Consumer]
sources: [https://example.com]
"""


def dialects(folder: Path, text: str = DIALECT) -> Path:
    """Write a dialect and a rule below `folder` and return it."""
    (folder / "dialects").mkdir(exist_ok=True)
    write(folder / "dialects", own=text)
    return write(folder, one=rule("one"))


def test_a_dialect_spells_by_level_and_exception(tmp_path: Path) -> None:
    [own] = load([dialects(tmp_path)]).dialects
    spelled = [
        own.spelling("fetch.min.bytes", "consumer"),
        own.spelling("client.id", "client"),
        own.spelling("acks", "producer"),
    ]
    assert spelled == ["acme.fetch.min.bytes", "ACME_CLIENT_ID", "acks"]
    assert (own.spelling("group.id", "consumer"), own.places) == ("acme.group", ("client",))


def test_a_variable_of_an_image_keeps_dashes_and_underscores_apart(tmp_path: Path) -> None:
    [own] = load([dialects(tmp_path)]).dialects
    assert own.spelling("a.b-c_d", "client") == "ACME_A_B___C__D"


def test_the_settings_of_a_plan_have_the_level_of_their_client() -> None:
    names = ("max.poll.records", "acks", "request.timeout.ms", "num.standby.replicas", "my.own")
    levels = setting_levels([built_rule("one", runbook=setting("client", *names))])
    assert levels == {
        "client": {
            "acks": "producer",
            "max.poll.records": "consumer",
            "num.standby.replicas": "streams",
            "request.timeout.ms": "client",
        }
    }


def test_a_setting_of_a_worker_may_have_the_prefix_of_its_clients() -> None:
    levels = setting_levels([built_rule("one", runbook=setting("worker", "producer.acks", "producer.nothing"))])
    assert levels == {"worker": {"producer.acks": "worker"}}


def test_a_cached_plan_and_one_with_further_files_keep_their_dialects(tmp_path: Path) -> None:
    folder = dialects(tmp_path)
    compiled = load_cached([folder], tmp_path / "cache")
    assert load_cached([folder], tmp_path / "cache") == compiled == load([folder])
    assert [dialect.name for dialect in compiled.dialects] == ["own"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("acme.{name}", "acme.", "TOC312"),
        ("acme.{name}", "acme.{nam}", "TOC312"),
        ("group.id", "group.idd", "TOC313"),
        ("max.poll.records: it", "log.dirs: it", "TOC313"),
        ("[ERROR acme.Consumer]", "[other]", "TOC308"),
        ("spells: {consumer", "spells: {customer", "TOC204"),
        ("'acme\\.Consumer'", "'('", "TOC305"),
        ("name: own", "name: other", "TOC210"),
        ("sources:", "commands: {'(': x}\nsources:", "TOC305"),
        ("sources:", "absent_commands: {'(': x}\nsources:", "TOC305"),
        ("sources: [https://example.com]", "notes: none", "TOC202"),
    ],
)
def test_what_is_wrong_is_reported(old: str, new: str, code: str, tmp_path: Path) -> None:
    assert DIALECT.count(old) == 1
    assert code in {finding.code for finding in load_pack([dialects(tmp_path, DIALECT.replace(old, new))]).errors()}


def test_a_dialect_is_defined_once(tmp_path: Path) -> None:
    (tmp_path / "second" / "dialects").mkdir(parents=True)
    write(tmp_path / "second" / "dialects", own=DIALECT)
    assert [finding.code for finding in load_pack([dialects(tmp_path)]).errors()] == ["TOC501"]
