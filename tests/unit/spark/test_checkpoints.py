"""The files of a checkpoint in a folder, and the mark by which executors prove that they share it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from engine.errors import TocsinError
from engine.spark.checkpoints import LocalCheckpoint, marked


def test_files_are_written_read_listed_and_removed_below_a_folder(tmp_path: Path) -> None:
    files = LocalCheckpoint(tmp_path / "state.checkpoint")
    assert (files.location, files.text("a"), files.names("query")) == (str(tmp_path / "state.checkpoint"), None, [])
    query = files.within("query")
    query.write("offsets/7", "seven")
    assert (query.text("offsets/7"), files.text("query/offsets/7"), query.names("offsets")) == ("seven", "seven", ["7"])
    assert query.text("offsets/7/8") is None
    query.remove("offsets/7")
    query.remove("offsets/7")
    assert query.text("offsets/7") is None
    files.remove("query")
    assert files.names("query") == []


def test_whoever_sees_the_mark_of_the_driver_shares_the_checkpoint(tmp_path: Path) -> None:
    marked(tmp_path).check()


def test_whoever_does_not_is_told_with_its_machine_and_what_to_do(tmp_path: Path) -> None:
    mark = marked(tmp_path)
    Path(mark.path).unlink()
    with pytest.raises(TocsinError) as error:
        mark.check()
    assert str(error.value) == (
        f"the checkpoint {tmp_path} is not shared: executor {socket.gethostname()} does not see what the driver writes there"
        " (No such file or directory); mount the same folder on all machines, or set spark.checkpoint to one in hdfs: or s3a:"
    )


def test_a_mark_replaces_earlier_ones_under_a_new_name(tmp_path: Path) -> None:
    first, second = marked(tmp_path), marked(tmp_path)
    assert first.path != second.path
    assert [str(path) for path in tmp_path.glob("shared-*")] == [second.path]
