"""What rotation does to logs: archives are larger outside than inside only in toys, and the last words are in them."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from connectors.files import FilesSource
from engine.errors import SourceError
from tests.unit.connectors.files.triggers import LONG_S, append, reader

OLD = (1_700_000_000, 1_700_000_000)


def lines(first: int, end: int) -> str:
    """A log as they are: long lines that are much alike."""
    return "".join(
        f"[2026-03-01 10:{n // 60 % 60:02}:{n % 60:02},123] INFO [Log partition=orders-{n % 7}, dir=/var/lib/kafka/data] "
        f"Rolled new log segment at offset {n * 1000} in 3 ms. (kafka.log.Log)\n"
        for n in range(first, end)
    )


def compressed(path: Path, keep: bool = False) -> Path:
    archive = path.with_name(path.name + ".gz")
    archive.write_bytes(gzip.compress(path.read_bytes()))
    if not keep:
        path.unlink()
    return archive


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(lines(0, 100))
    return path


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
@pytest.mark.parametrize("final", [True, False])
def test_an_archive_that_is_smaller_than_its_content_is_read_once(tmp_path: Path, suffix: str, pack, final: bool) -> None:
    data = lines(0, 2000).encode()
    path = tmp_path / f"old.log{suffix}"
    path.write_bytes(pack(data))
    assert path.stat().st_size < len(data) / 5
    os.utime(path, OLD)
    query = reader(tmp_path, final=final)
    assert query.text() == data.decode()
    end = query.offset
    assert query.source.latest(end) == end, "a run with --once ends here"
    query.crash()
    assert query.source.latest(end) == end
    assert not query.losses


def test_what_was_written_before_a_log_was_compressed_at_once_is_read_from_the_archive(log: Path) -> None:
    query = reader(log.parent)
    assert query.text() == lines(0, 100)
    append(log, lines(100, 120))
    log.rename(log.parent / "server.log.1")
    compressed(log.parent / "server.log.1")
    log.write_text(lines(120, 130))
    chunks = query.trigger()
    assert b"".join(chunk.data for chunk in chunks).decode() == lines(100, 130)
    assert [chunk.offset for chunk in chunks] == [len(lines(0, 100)), len(lines(0, 120))]
    assert {chunk.source_id for chunk in chunks} == {str(log)}
    assert query.text() == ""
    assert not query.losses


def test_an_archive_that_is_still_being_written_is_waited_for(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    append(log, lines(100, 120))
    archive = compressed(log)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-50])
    assert query.text() == ""
    assert not query.progress().caught_up or not query.losses
    archive.write_bytes(whole)
    assert query.text() == lines(100, 120)
    assert not query.losses


def test_an_archive_that_stays_damaged_is_read_as_far_as_it_goes_and_the_rest_is_lost(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    append(log, lines(100, 5000))
    archive = compressed(log)
    archive.write_bytes(archive.read_bytes()[:-200])
    query.trigger()
    query.clocks.pass_by(LONG_S)
    text = query.text()
    assert len(text) > 1000
    assert lines(100, 5000).startswith(text)
    assert "damaged or ends early" in str(query.losses[0])


def test_without_the_archive_the_last_words_are_a_recorded_loss(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    append(log, lines(100, 120))
    compressed(log).rename(log.parent.parent / "elsewhere.gz")
    log.write_text(lines(120, 130))
    assert query.text() == lines(120, 130)
    assert [(loss.lost_from, loss.lost_to) for loss in query.losses] == [(len(lines(0, 100)),) * 2]


def test_a_file_deleted_after_it_was_quiet_for_long_lost_nothing(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    query.clocks.pass_by(LONG_S)
    query.trigger()
    log.unlink()
    assert query.text() == ""
    assert not query.losses


def test_a_container_log_behind_a_link_is_read_to_its_end_when_it_is_rotated(tmp_path: Path) -> None:
    pod, links = tmp_path / "pods" / "broker-0", tmp_path / "containers"
    pod.mkdir(parents=True)
    links.mkdir()
    target = pod / "0.log"
    target.write_text(lines(0, 50))
    (links / "broker-0.log").symlink_to("../pods/broker-0/0.log")
    query = reader(links)
    assert query.text() == lines(0, 50)
    append(target, lines(50, 60))
    target.rename(pod / "0.log.20260301-101500")
    target.write_text(lines(60, 70))
    assert query.text() == lines(50, 70)
    append(target, lines(70, 80))
    compressed(pod / "0.log.20260301-101500")
    target.rename(pod / "0.log.20260301-111500")
    compressed(pod / "0.log.20260301-111500")
    target.write_text(lines(80, 90))
    assert query.text() == lines(70, 90)
    assert not query.losses


def test_a_link_that_is_switched_to_another_file_leaves_nothing_of_the_first_unread(tmp_path: Path) -> None:
    for name, text in (("0.txt", lines(0, 10)), ("1.txt", "")):
        (tmp_path / name).write_text(text)
    link = tmp_path / "app.log"
    link.symlink_to("0.txt")
    query = reader(tmp_path)
    query.trigger()
    append(tmp_path / "0.txt", lines(10, 12))
    append(tmp_path / "1.txt", lines(12, 15))
    link.unlink()
    link.symlink_to("1.txt")
    assert query.text() == lines(10, 15)
    assert not query.losses


@pytest.mark.parametrize("look_between", [True, False])
def test_a_copied_and_cut_log_is_counted_once_when_the_copy_is_followed_too(log: Path, look_between: bool) -> None:
    query = reader(log.parent)
    text = query.text()
    append(log, lines(100, 103))
    shutil.copyfile(log, log.parent / "server.log.1")
    if look_between:
        text += query.text()
    os.truncate(log, 0)
    append(log, lines(103, 105))
    text += query.text() + query.text()
    assert text == lines(0, 105)
    assert not query.losses


def test_a_copy_that_goes_on_by_itself_is_a_log_of_its_own(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    copy = log.parent / "copy.log"
    shutil.copyfile(log, copy)
    assert query.text() == ""
    append(log, lines(100, 101))
    append(copy, "another line\n")
    assert query.text() == lines(0, 100) + "another line\n" + lines(100, 101)


def test_files_with_an_equal_first_line_are_read_each(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(f"=== started ===\n{name} is another\n")
    assert reader(tmp_path).text().count("started") == 2


def test_an_archive_with_the_first_line_of_a_file_that_is_gone_is_read(log: Path) -> None:
    log.write_text("=== started ===\n" + lines(0, 20))
    query = reader(log.parent)
    query.trigger()
    log.unlink()
    archive = log.parent / "other.log.1.gz"
    archive.write_bytes(gzip.compress(("=== started ===\n" + lines(500, 520)).encode()))
    os.utime(archive, OLD)
    assert query.text() == "=== started ===\n" + lines(500, 520)


@pytest.mark.parametrize("grown", [0, 3, 200])
def test_a_file_cut_and_filled_again_beyond_its_old_size_is_read_from_its_start(log: Path, grown: int) -> None:
    first, rest = lines(0, 100).split("\n", 1)
    query = reader(log.parent)
    query.trigger()
    log.write_text(f"{first}\n{lines(500, 500 + 100 + grown)}{rest and ''}")
    assert query.text() == f"{first}\n{lines(500, 600 + grown)}"
    assert "was cut" in str(query.losses[0])


def test_a_planned_slice_is_read_from_the_archive_that_its_file_became(log: Path) -> None:
    query = reader(log.parent)
    end = query.planned()
    query.crash()
    compressed(log)
    chunks = query.batch(end)
    assert b"".join(chunk.data for chunk in chunks).decode() == lines(0, 100)
    assert not query.losses


def test_a_planned_slice_is_not_read_from_a_file_that_was_filled_anew(log: Path) -> None:
    query = reader(log.parent)
    end = query.planned()
    log.write_text(lines(300, 500))
    assert query.batch(end) == []
    assert [(loss.lost_from, loss.lost_to) for loss in query.losses] == [(0, len(lines(0, 100)))]
    assert query.text() == lines(300, 500)


def test_each_piece_of_a_slice_that_is_gone_is_recorded(tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_text(f"{name}\n")
    query = reader(tmp_path)
    end = query.planned()
    for name in ("a.log", "c.log"):
        (tmp_path / name).unlink()
    assert [chunk.data for chunk in query.batch(end)] == [b"b.log\n"]
    assert [Path(loss.source_id).name for loss in query.losses] == ["a.log", "c.log"]


def test_a_program_that_goes_on_writing_to_its_rotated_file_is_read(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    log.rename(log.parent / "server.log.1")
    log.write_text(lines(200, 201))
    assert query.text() == lines(200, 201)
    append(log.parent / "server.log.1", lines(100, 103))
    assert query.text() == lines(100, 103)
    assert not query.losses


def test_clocks_that_jump_change_nothing(log: Path) -> None:
    query = reader(log.parent)
    text = query.text()
    for jump, first in ((86_400 * 365, 100), (-86_400 * 700, 101), (10, 102)):
        query.clocks.wall_s += jump
        append(log, lines(first, first + 1))
        text += query.text()
    compressed(log)
    assert text + query.text() == lines(0, 103)
    assert not query.losses


def test_positions_that_another_version_wrote_are_refused(log: Path) -> None:
    old = {"streams": {str(log): {"home": str(log), "path": str(log), "file": "1-2-abc", "base": 0, "at": 4}}, "retired": []}
    source = FilesSource([str(log)])
    for ask in (lambda: source.latest(old), lambda: source.partitions({}, old), lambda: source.progress(old)):
        with pytest.raises(SourceError, match="another version of tocsin; remove the checkpoint"):
            ask()


def test_a_copy_that_is_compressed_after_its_log_was_cut_is_counted_once(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    copy = log.parent / "server.log.1"
    shutil.copyfile(log, copy)
    append(log, lines(100, 101))
    assert query.text() == lines(100, 101)
    os.truncate(log, 0)
    compressed(copy)
    append(log, lines(101, 102))
    assert query.text() + query.text() == lines(101, 102)


def test_an_archive_that_is_deleted_soon_after_it_was_made_was_read(log: Path) -> None:
    query = reader(log.parent)
    archive = compressed(log)
    assert query.text() == lines(0, 100)
    archive.unlink()
    assert query.text() == ""


def test_what_was_passed_over_at_the_start_is_known_when_it_is_rotated(log: Path) -> None:
    os.utime(log, OLD)
    query = reader(log.parent, start="latest")
    append(log, lines(100, 103))
    log.rename(log.parent / "server.log.1")
    compressed(log.parent / "server.log.1")
    log.write_text(lines(103, 104))
    assert query.text() == lines(100, 104)
    os.truncate(log, 0)
    append(log, lines(104, 110))
    assert query.text() == lines(104, 110)


def test_a_copy_is_told_from_another_file_that_got_its_inode(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    copy = log.parent / "server.log.1"
    shutil.copyfile(log, copy)
    query.trigger()
    ((told, _),) = [
        (each["copy"], each["original"]) for stream in query.offset["streams"].values() for each in stream["copies"]
    ]
    assert told[3][:2] == [0, 4096], "what tells the copy is its head"
    copy.write_text(lines(700, 900))
    assert query.text() == lines(700, 900)


def test_a_log_filled_again_with_what_was_read_of_it_is_taken_as_uncut(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    log.write_text(lines(0, 101))
    assert query.text() == lines(100, 101)
    assert not query.losses


def test_an_archive_that_turns_up_after_its_file_was_missed_is_read_from_where_that_was_read_to(log: Path) -> None:
    query = reader(log.parent)
    query.trigger()
    append(log, lines(100, 103))
    archive = compressed(log)
    elsewhere = archive.rename(log.parent.parent / "elsewhere.gz")
    assert query.text() == ""
    query.crash()
    elsewhere.rename(archive)
    assert query.text() == lines(100, 103)
    assert query.text() == ""


def test_a_log_that_is_cut_and_then_rotated_to_a_name_nobody_asked_for_is_read(log: Path) -> None:
    query = reader(log.parent, "server.log")
    query.trigger()
    os.truncate(log, 0)
    append(log, lines(100, 103))
    log.rename(log.parent / "server.log.1")
    log.write_text(lines(103, 105))
    assert query.text() == lines(100, 105)
    assert "cut" in str(query.losses[0]) or "replaced" in str(query.losses[0])
