"""Files as a stream: nothing lost, nothing twice, over growth, rotation, truncation and deletion."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.files import FilesSource
from engine.errors import SourceDenied
from tests.unit.connectors.files.triggers import LONG_S, Reader, append
from tests.unit.connectors.files.triggers import reader as source


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("one\ntwo\n")
    return path


def test_a_growing_file_is_read_at_line_ends_only(log: Path) -> None:
    reader = source(log.parent)
    assert reader.text() == "one\ntwo\n"
    append(log, "thr")
    assert reader.text() == ""
    append(log, "ee\nfour\nfi")
    (chunk,) = reader.trigger()
    assert (chunk.offset, chunk.number, chunk.data) == (8, 3, b"three\nfour\n")
    assert reader.progress().caught_up


def test_nothing_new_gives_the_same_offset(log: Path) -> None:
    reader = source(log.parent)
    reader.trigger()
    assert reader.source.latest(reader.offset) == reader.offset


def test_bounded_input_includes_a_last_line_without_its_end_and_nothing_written_later(log: Path) -> None:
    append(log, "three")
    reader = source(log.parent, final=True)
    assert reader.text(max_lines=2) == "one\ntwo\n"
    append(log, " more\nfour\n")
    assert reader.text() == "three"
    assert reader.text() == ""


def test_small_batches_read_the_same_lines_with_the_same_numbers(tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_text("".join(f"{name} {n}\n" for n in range(1, 21)))
    reader = source(tmp_path)
    seen: dict[str, list[str]] = {}
    while chunks := reader.trigger(max_lines=7):
        assert sum(chunk.data.count(b"\n") for chunk in chunks) <= 7
        for chunk in chunks:
            lines = chunk.data.decode().splitlines()
            assert lines[0].endswith(f" {chunk.number}")
            seen.setdefault(chunk.source_id, []).extend(lines)
    assert seen == {str(tmp_path / n): [f"{n} {i}" for i in range(1, 21)] for n in ("a.log", "b.log", "c.log")}


def test_a_rotated_file_is_finished_and_its_successor_continues_the_stream(log: Path) -> None:
    reader = source(log.parent)
    reader.trigger()
    append(log, "three\n")
    log.rename(log.parent / "server.log.2022-10-05-17")
    log.write_text("four\n")
    chunks = reader.trigger()
    assert [(c.source_id, c.offset, c.data) for c in chunks] == [(str(log), 8, b"three\n"), (str(log), 14, b"four\n")]
    append(log, "five\n")
    assert reader.text() == "five\n"
    assert not reader.losses


def test_a_file_that_was_renamed_without_a_successor_is_read_where_it_is(log: Path) -> None:
    reader = source(log.parent)
    reader.trigger()
    append(log, "three\n")
    log.rename(log.parent / "server.log.1")
    assert reader.text() == "three\n"


def test_older_rotated_files_that_move_on_by_one_are_not_read_again(log: Path) -> None:
    (log.parent / "server.log.1").write_text("zero\n")
    reader = source(log.parent)
    assert sorted(c.data for c in reader.trigger()) == [b"one\ntwo\n", b"zero\n"]
    (log.parent / "server.log.1").rename(log.parent / "server.log.2")
    log.rename(log.parent / "server.log.1")
    log.write_text("three\n")
    assert reader.text() == "three\n"
    assert reader.text() == ""


def test_compressing_a_file_that_was_read_does_not_read_it_again(log: Path) -> None:
    reader = source(log.parent)
    reader.trigger()
    rotated = log.parent / "server.log.1.gz"
    rotated.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    os.utime(rotated, (1_700_000_000, 1_700_000_000))
    log.write_text("three\n")
    assert reader.text() == "three\n"


def test_a_compressed_file_is_read_whole_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "old.log.gz"
    packed = gzip.compress(b"a\nb\nc")
    path.write_bytes(packed[:-3])
    reader = source(tmp_path)
    assert reader.text() == "", "it is still being written"
    path.write_bytes(packed)
    assert reader.text(max_lines=1) == "a\nb\nc"
    assert reader.text() == ""
    assert reader.progress().closed


def test_a_file_cut_to_nothing_is_read_from_its_start_and_the_loss_is_told_once(log: Path) -> None:
    reader = source(log.parent)
    reader.trigger()
    append(log, "not yet read, long enough\n")
    reader.source.latest(reader.offset)
    log.write_text("one\n")
    (chunk,) = reader.trigger()
    assert (chunk.offset, chunk.data) == (8, b"one\n")
    assert [str(loss) for loss in reader.losses] == [
        f"{log}: offsets 8 to 8 are gone (the file was cut to 4 bytes; what was written in between is unknown)"
    ]
    assert reader.text() == ""
    assert len(reader.losses) == 1


def test_a_file_that_vanishes_unread_is_a_counted_loss_and_no_crash_loop(log: Path) -> None:
    reader = source(log.parent)
    end = reader.source.latest(reader.offset, max_lines=1)
    reader.offset = end
    log.unlink()
    assert reader.text() == ""
    assert [(loss.lost_from, loss.lost_to) for loss in reader.losses] == [(4, 8)]
    assert reader.text() == ""
    assert len(reader.losses) == 1
    assert reader.progress().caught_up


def test_a_rotated_file_that_was_read_and_deleted_is_forgotten(log: Path) -> None:
    old = log.parent / "server.log.7"
    old.write_text("zero\n")
    reader = source(log.parent)
    reader.trigger()
    reader.clocks.pass_by(LONG_S)
    reader.trigger()
    old.unlink()
    reader.trigger()
    reader.trigger()
    assert [p.source_id for p in reader.source.progress(reader.offset)] == [str(log)]
    assert not reader.losses


def test_a_file_that_vanishes_between_planning_and_reading_is_a_loss(log: Path) -> None:
    reader = source(log.parent)
    end = reader.source.latest(reader.offset)
    (slice_,) = reader.source.partitions(reader.offset, end)
    log.unlink()
    assert list(reader.read(slice_)) == []
    assert [(loss.lost_from, loss.lost_to) for loss in reader.losses] == [(0, 8)]


def test_a_planned_slice_is_read_from_where_rotation_moved_the_file(log: Path) -> None:
    reader = source(log.parent)
    end = reader.source.latest(reader.offset)
    (slice_,) = reader.source.partitions(reader.offset, end)
    log.rename(log.parent / "server.log.1")
    log.write_text("three\n")
    assert [c.data for c in reader.read(slice_)] == [b"one\ntwo\n"]


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "old.log.gz"
    path.write_bytes(gzip.compress(b"a\nb\n")[:-4])
    reader = source(tmp_path, final=True)
    assert reader.text() == "a\nb\n"
    assert "damaged or ends early" in str(reader.losses[0])


def test_start_latest_passes_over_what_is_there_and_reads_what_comes(log: Path) -> None:
    os.utime(log, (1_700_000_000, 1_700_000_000))
    reader = source(log.parent, start="latest")
    assert reader.text() == ""
    append(log, "three\n")
    (log.parent / "new.log").write_text("new\n")
    assert sorted(c.data for c in reader.trigger()) == [b"new\n", b"three\n"]


def test_a_start_time_passes_over_files_last_changed_before_it(log: Path) -> None:
    old = log.parent / "old.log"
    old.write_text("old\n")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    reader = source(log.parent, start=datetime(2024, 1, 1, tzinfo=UTC).isoformat())
    assert reader.text() == "one\ntwo\n"


def test_labels_are_taken_from_the_path(tmp_path: Path) -> None:
    (tmp_path / "broker-12").mkdir()
    (tmp_path / "broker-12" / "server.log").write_text("x\n")
    labels = {"cluster": "prod", "broker": r"{path:broker-(\d{1,3})}", "rack": "{path:rack-(.)}"}
    (chunk,) = Reader({"paths": [str(tmp_path)], "labels": labels}).trigger()
    assert chunk.labels == {"cluster": "prod", "broker": "12"}


def test_a_rotated_files_period_is_read_in_the_zone_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "server.log.2022-10-05-17").write_text("x\n")
    reader = source(tmp_path, labels={"timezone": "Asia/Seoul"})
    reader.trigger()
    progress = reader.progress()
    assert (progress.closed, progress.covers_until) == (True, datetime(2022, 10, 5, 9, tzinfo=UTC))


def test_slices_share_the_bytes_and_keep_streams_whole(tmp_path: Path) -> None:
    for n in range(4):
        (tmp_path / f"{n}.log").write_text(f"{n}\n" * 100)
    files = FilesSource([str(tmp_path)])
    slices = files.partitions(files.initial(), files.latest(files.initial()), parallelism=2)
    names = [[chunk.source_id for chunk in files.chunks(slice_)] for slice_ in slices]
    assert [len(n) for n in names] == [2, 2]


def test_check_names_every_input_that_cannot_be_read(tmp_path: Path, log: Path) -> None:
    (tmp_path / "core").write_bytes(b"\0\0")
    found = FilesSource([str(log), str(tmp_path / "core"), str(tmp_path / "none")]).check()
    assert found.files == (str(log),)
    assert len(found.errors) == 2


def test_a_file_whose_name_is_no_text_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    for name in (b"ok.log", b"b\xff.log"):
        (tmp_path / os.fsdecode(name)).write_text("a line\n")
    reader = source(tmp_path)
    found = reader.source.check()
    assert [Path(path).name for path in found.files] == ["ok.log"]
    assert "b\\udcff.log is not followed" in str(found.errors[0])
    assert reader.text() == "a line\n"


def test_a_file_that_appears_and_cannot_be_read_is_named_until_it_can_be(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "one\n")
    reader = source(tmp_path)
    assert reader.text() == "one\n"
    assert not reader.source.unreadable()
    dump = tmp_path / "b.log"
    dump.write_bytes(b"\0\1\2")
    append(tmp_path / "a.log", "two\n")
    append(tmp_path / "empty.log", "")
    assert reader.text() == "two\n"
    assert {what: str(why) for what, why in reader.source.unreadable().items()} == {
        str(dump): f"{dump}: is not text (it holds NUL bytes)"
    }
    dump.write_text("three\n")
    assert reader.text() == "three\n"
    assert not reader.source.unreadable()


def test_a_name_that_is_no_text_is_named_when_it_appears(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "one\n")
    reader = source(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log")).write_text("two\n")
    assert reader.text() == "one\n"
    ((what, why),) = reader.source.unreadable().items()
    assert what.encode()
    assert "its name is not UTF-8" in str(why)


def test_what_is_not_there_yet_is_no_trouble(tmp_path: Path) -> None:
    reader = source(tmp_path)
    assert reader.text() == ""
    assert not reader.source.unreadable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_denied(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "one\n")
    reader = source(tmp_path)
    (tmp_path / "a.log").chmod(0)
    assert reader.text() == ""
    assert [type(why) for why in reader.source.unreadable().values()] == [SourceDenied]
