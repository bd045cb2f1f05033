"""The notifier as a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.commands import notify
from engine.cli.live_configuration import LiveNotifications
from engine.cli.main import main
from engine.config import load

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\nroute: {receiver: terminal}\n"


def test_it_ends_when_the_file_of_its_store_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(CONFIG)
    path, looks = load(config).store.path, list[int]()
    assert path is not None

    def removed(_: object) -> None:
        looks.append(1)
        assert len(looks) < 9, "it goes on without its store"
        path.unlink(missing_ok=True)

    monkeypatch.setattr(notify, "LOOK_S", 0.01)
    monkeypatch.setattr(LiveNotifications, "poll", removed)
    assert main(["notify", "-c", str(config)]) == 3
    assert "was removed while it was in use" in capsys.readouterr().err
