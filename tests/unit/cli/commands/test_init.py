"""`tocsin init` writes a configuration that passes `config check`, and replaces nothing unasked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from engine.cli.commands import init
from engine.cli.main import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text("[2026-01-01 00:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_it_writes_passes_the_check(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--logs", "logs", "--cluster", "prod", "--brokers", "1,2,3"]) == 0
    assert "next: tocsin config check -c tocsin.yml" in capfd.readouterr().out
    text = (home / "tocsin.yml").read_text()
    assert text.startswith("# yaml-language-server: $schema=tocsin.schema.json\n")
    assert json.loads((home / "tocsin.schema.json").read_text())["required"] == ["sources"]
    (home / "tocsin.yml").write_text(text + 'web: {listen: "127.0.0.1:0"}\n')  # another test may use the usual port
    assert main(["config", "check"]) == 0, capfd.readouterr().out


def test_a_file_that_is_there_stays(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "tocsin.yml").write_text("mine\n")
    assert main(["init", "--logs", "logs"]) == 2
    assert (home / "tocsin.yml").read_text() == "mine\n"
    assert "is there already" in capfd.readouterr().err
    assert main(["init", "--logs", "logs", "--force"]) == 0


def test_a_schema_that_is_there_stays(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "tocsin.schema.json").write_text("mine\n")
    assert main(["init", "--logs", "logs"]) == 2
    assert (home / "tocsin.schema.json").read_text() == "mine\n"
    assert "tocsin.schema.json is there already" in capfd.readouterr().err
    assert not (home / "tocsin.yml").exists()
    assert main(["init", "--logs", "logs", "--force"]) == 0
    assert main(["init", "--logs", "logs", "--out", "other.yml"]) == 0, "the schema is the same"


def test_without_a_terminal_the_logs_must_be_named(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 2
    assert "Name them with --logs" in capfd.readouterr().err
    assert main(["init", "--logs", "logs", "--brokers", "one"]) == 2
    assert not (home / "tocsin.yml").exists()


class Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init.sys, "stdin", Typed("logs\nprod\n#kafka-ops\n"))
    assert main(["init"]) == 0
    text = (home / "tocsin.yml").read_text()
    assert "- {type: files, paths: [logs], labels: {cluster: prod}}" in text
    assert 'slack: {channel: "#kafka-ops", token: "env:SLACK_BOT_TOKEN"}' in text


def test_the_schema_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert "kibana" in json.loads(capfd.readouterr().out)["properties"]
