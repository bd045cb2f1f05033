"""Positions of a spool stay: across segments, torn lines, several readers and the loss of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import spool
from engine.spool import Spool


def text(spool_: Spool, start: int, end: int) -> bytes:
    return b"".join(data for _, data in spool_.pieces(start, end))


def test_what_was_appended_is_read_at_its_positions(tmp_path: Path) -> None:
    writer, reader = Spool(tmp_path / "s"), Spool(tmp_path / "s")
    assert (reader.end(), reader.reach(0, None), text(reader, 0, 0)) == (0, 0, b"")
    writer.append(b"one\ntwo\n")
    writer.append(b"three\n")
    assert reader.end() == reader.reach(0, None) == 14
    assert text(reader, 0, 14) == b"one\ntwo\nthree\n"
    assert text(reader, 4, 8) == b"two\n"


@pytest.mark.parametrize(("start", "most", "end"), [(0, 1, 4), (0, 2, 8), (4, 1, 8), (4, 9, 14), (14, 1, 14)])
def test_a_batch_ends_behind_its_last_line(tmp_path: Path, start: int, most: int, end: int) -> None:
    spool_ = Spool(tmp_path)
    spool_.append(b"one\ntwo\nthree\n")
    assert spool_.reach(start, most) == end


def test_a_line_that_a_crash_cut_off_is_neither_read_nor_joined_with_the_next(tmp_path: Path) -> None:
    spool_ = Spool(tmp_path)
    spool_.append(b"one\n")
    (segment,) = tmp_path.iterdir()
    segment.write_bytes(b"one\ntw")
    assert spool_.end() == 4
    spool_.append(b"three\n")
    assert text(spool_, 0, spool_.end()) == b"one\nthree\n"


def test_a_folder_that_is_gone_does_not_give_the_same_position_to_other_lines(tmp_path: Path) -> None:
    spool_ = Spool(tmp_path)
    spool_.append(b"new\n", at_least=100)
    assert (spool_.end(), text(spool_, 100, 104)) == (104, b"new\n")
    spool_.append(b"more\n", at_least=50)
    assert text(spool_, 100, spool_.end()) == b"new\nmore\n"


@pytest.mark.parametrize("piece_bytes", [1, 5, 1000])
@given(rounds=st.lists(st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b" ") + b"\n"), min_size=1), max_size=9))
def test_any_lines_are_read_once_whatever_the_sizes(
    tmp_path_factory: pytest.TempPathFactory, piece_bytes: int, rounds: list[list[bytes]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "SEGMENT_BYTES", 20)
        patch.setattr(spool, "PIECE_BYTES", piece_bytes)
        patch.setattr(spool, "_TAIL_BYTES", piece_bytes)
        spool_ = Spool(tmp_path_factory.mktemp("spool"))
        for lines in rounds:
            spool_.append(b"".join(lines))
        written = b"".join(line for lines in rounds for line in lines)
        assert text(spool_, 0, spool_.end()) == written
        assert all(data.endswith(b"\n") for _, data in spool_.pieces(0, spool_.end()))
        at, read = 0, list[bytes]()
        while (end := spool_.reach(at, 1)) != at:
            read.append(text(spool_, at, end))
            at = end
        assert read == [line for lines in rounds for line in lines]


def test_what_was_read_is_removed_except_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 4)
    spool_ = Spool(tmp_path)
    for number in range(9):
        spool_.append(f"l{number}x\n".encode())
    spool_.prune(12)
    assert text(spool_, 0, 36).startswith(b"l0x\n")  # three were read, fewer than are kept
    spool_.prune(36)
    assert text(spool_, 0, 36) == b"l4x\nl5x\nl6x\nl7x\nl8x\n"
    assert spool_.end() == 36
