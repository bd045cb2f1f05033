"""`tocsin routes` and `tocsin receivers`: who would be told, and whether they can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.standins.slack import TOKEN, SlackStandIn

CONFIG = """
sources:
  - {type: files, paths: [a.log]}
route:
  receiver: screen
  routes: [{matchers: ['component="connect"'], receiver: data, group_wait: 5s}]
receivers:
  - {name: screen, terminal: {}}
  - {name: data, slack: {channel: "#kafka-ops", token: "env:TOCSIN_TEST_TOKEN", base_url: "BASE"}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(CONFIG.replace("BASE", "http://localhost:1/api/"))
    return path


def test_the_tree_is_shown(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "show", "-c", str(config)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "everything else -> screen  (after 30 s, changes every 300 s, repeated every 14400 s)",
        '  component="connect" -> data  (after 5 s, changes every 300 s, repeated every 14400 s)',
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


def test_what_is_no_label_is_refused(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "test", "-c", str(config), "connect"]) == 2
    assert "`connect` is no label" in capsys.readouterr().err


def test_receivers_are_listed_without_their_secrets(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
    assert main(["receivers", "list", "-c", str(config)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == ["screen  terminal", "data    slack     #kafka-ops by env:TOCSIN_TEST_TOKEN"]


def test_a_test_message_reaches_its_receiver(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["receivers", "test", "screen", "-c", str(config)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["receivers", "test", "data", "-c", str(config)]) == 2
    assert "receiver data: env:TOCSIN_TEST_TOKEN: the environment variable" in capsys.readouterr().err
    with SlackStandIn() as server:
        config.write_text(CONFIG.replace("BASE", server.base_url))
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", "wrong")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 3
        assert "data: rejected (Slack says invalid_auth; check the token" in capsys.readouterr().out
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert capsys.readouterr().out == "data: delivered\n"
        assert len(server.parents()) == 1


def test_an_unknown_receiver_names_the_known_ones(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receivers", "test", "nobody", "-c", str(config)]) == 2
    assert "there is no receiver `nobody`; known: screen, data" in capsys.readouterr().err


def test_a_silence_is_added_listed_and_ended(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-c", str(config)]
    assert main(["silences", "add", *where, "--for", "2h", "--comment", "moving brokers", "component=broker"]) == 0
    id = capsys.readouterr().out.strip()
    assert main(["silences", "list", *where]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{id}  until ")
    assert out.endswith('component="broker"  moving brokers\n')
    assert main(["silences", "list", *where, "--format", "json"]) == 0
    assert [silence["id"] for silence in json.loads(capsys.readouterr().out)] == [id]
    assert main(["silences", "expire", *where, id]) == 0
    assert main(["silences", "list", *where]) == 0
    assert capsys.readouterr().out == ""
    assert main(["silences", "expire", *where, id]) == 2


@pytest.mark.parametrize(("duration", "matcher"), [("soon", "a=b"), ("1h", "nonsense")])
def test_what_is_no_silence_is_refused(config: Path, duration: str, matcher: str) -> None:
    assert main(["silences", "add", "-c", str(config), "--for", duration, matcher]) == 2
