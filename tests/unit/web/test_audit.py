"""The audit: a line for each event, for this user alone, bounded."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.web import audit as auditing
from engine.web.audit import AuditFile
from tests.unit.web.conftest import NOW


def test_each_event_is_one_line_whatever_is_in_it(tmp_path: Path) -> None:
    audit = AuditFile(tmp_path / "new" / "audit.jsonl", lambda: NOW)
    audit("sign-in failed", 'x"\n%s{"event": "signed in"}' + "y" * 1000, "10.0.0.7", why="")
    audit.close()
    (line,) = (tmp_path / "new" / "audit.jsonl").read_text().splitlines()
    value = json.loads(line)
    assert value["at"] == "2023-02-03T04:09:02.285+00:00"
    assert (value["event"], value["address"], len(value["user"]), "why" in value) == ("sign-in failed", "10.0.0.7", 300, False)
    assert stat.S_IMODE((tmp_path / "new" / "audit.jsonl").stat().st_mode) == 0o600


def test_it_never_takes_more_than_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "MOST_BYTES", 300)
    audit = AuditFile(tmp_path / "audit.jsonl", lambda: NOW)
    for n in range(100):
        audit("signed in", f"user {n}", "10.0.0.7")
    audit.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == auditing.FILES + 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size <= 300 for file in files)
    assert "user 99" in files[0].read_text()


def test_a_place_that_cannot_be_written_to_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="the audit of the pages cannot be written"):
        AuditFile(tmp_path / "file" / "audit.jsonl", lambda: NOW)
