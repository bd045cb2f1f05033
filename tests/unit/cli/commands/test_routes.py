"""`tocsin routes`: the tree of routes, and which receiver an incident with given labels reaches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main

CONFIG = """
sources:
  - {type: files, paths: [a.log]}
route:
  receiver: screen
  routes: [{matchers: ['component="connect"'], receiver: data, group_wait: 5s}]
receivers:
  - {name: screen, terminal: {}}
  - {name: data, slack: {channel: "#kafka-ops", token: "env:TOCSIN_TEST_TOKEN"}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(CONFIG)
    return path


def test_the_tree_is_shown(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "show", "-c", str(config)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "everything else -> screen  (after 30 s, changes every 5 min, repeated every 4 h)",
        '  component="connect" -> data  (after 5 s, changes every 5 min, repeated every 4 h)',
    ]
    assert main(["routes", "show", "-c", str(config), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["routes"][0]["matchers"] == ['component="connect"']


@pytest.mark.parametrize(
    ("labels", "receiver"), [(["component=connect"], "data"), (["component=broker"], "screen"), ([], "screen")]
)
def test_a_route_is_tried(config: Path, capsys: pytest.CaptureFixture[str], labels: list[str], receiver: str) -> None:
    assert main(["routes", "test", "-c", str(config), *labels]) == 1
    assert capsys.readouterr().out.startswith(f"{receiver}  (")
    assert main(["routes", "test", "-c", str(config), *labels, "--format", "json"]) == 1
    assert [target["receiver"] for target in json.loads(capsys.readouterr().out)] == [receiver]


def test_a_receiver_that_keeps_a_record_is_shown_though_no_route_names_it(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG + '  - {name: archive, elasticsearch: {url: "http://localhost:9200"}}\n')
    assert main(["routes", "show", "-c", str(config)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "everything -> archive  (a record: at once, and every change)"
    assert main(["routes", "show", "-c", str(config), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == ["archive"]
    assert main(["routes", "test", "-c", str(config)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "archive  (a record: at once, and every change)"
    assert main(["routes", "test", "-c", str(config), "--format", "json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [(row["receiver"], row["record"]) for row in rows] == [("screen", False), ("archive", True)]


def test_what_is_no_label_is_refused(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "test", "-c", str(config), "connect"]) == 2
    assert "`connect` is no label" in capsys.readouterr().err
