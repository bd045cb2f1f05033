"""`tocsin kibana`: what is written for a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main

CONFIG = """
sources:
  - {type: files, paths: [a.log]}
receivers:
  - {name: es, elasticsearch: {url: "http://localhost:9200", index: kafka-incidents}}
kibana: {url: "https://k", indices: ["logs-*"], fields: {level: severity}}
"""


def test_saved_objects_are_written_for_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(CONFIG)
    assert main(["kibana", "export", "-c", str(config)]) == 0
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [line["attributes"]["title"] for line in lines if line.get("type") == "index-pattern"] == [
        "kafka-incidents",
        "logs-*",
    ]
    assert "severity: (" in printed
    assert main(["kibana", "export", "-c", str(config), "--out", str(tmp_path / "k.ndjson")]) == 0
    assert (tmp_path / "k.ndjson").read_text() == printed
    assert f"{len(lines) - 1} saved objects: {tmp_path}/k.ndjson" in capsys.readouterr().out


def test_without_an_index_of_incidents_there_is_nothing_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources: [{type: files, paths: [a.log]}]\n")
    assert main(["kibana", "export", "-c", str(config)]) == 2
    assert "no receiver of type elasticsearch is configured" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(CONFIG)
    assert main(["kibana", "export", "-c", str(config), "--out", str(tmp_path / "none" / "k")]) == 2
    assert "it cannot be written (No such file or directory)" in capsys.readouterr().err
