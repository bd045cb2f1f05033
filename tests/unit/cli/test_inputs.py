"""What tocsin writes itself is no input, wherever the configuration puts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.inputs import checks, open_input, own_paths
from engine.config import load


@pytest.mark.parametrize("once", [True, False])
def test_a_source_that_is_the_folder_of_everything_does_not_follow_store_and_checkpoint(tmp_path: Path, once: bool) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources:\n  - {type: files, paths: ['.']}\nstore: sqlite:///state/tocsin.db\n")
    for name in ("app.log", "state/tocsin.db", "state/tocsin.db-wal", "state/tocsin.checkpoint/spark.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a line\n")
    settings = load(config, checks())
    source = open_input(settings.sources[0], once, own_paths(settings))
    assert source.contents == (str(tmp_path / "app.log"),)
    files = source.specs[0].open()
    assert [Path(name).name for name in files.latest(files.initial())["streams"]] == ["app.log"]
