"""Reading files as lines: nothing good is lost, everything bad is one clear sentence."""

import gzip
import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connectors.files import STDIN, find, read_path, same_content
from engine.cli.intake import Intake
from engine.errors import SourceDenied, SourceError, SourceMissing
from engine.model.records import Progress, RawLine


def written(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def values(path: str) -> list[bytes]:
    return [item.value for item in read_path(path) if isinstance(item, RawLine)]


def test_lines_bear_offset_number_and_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "server.log", b"one\r\n\ntwo\nlast without end")
    found = list(read_path(path, {"cluster": "prod"}))
    assert [(i.offset, i.number, i.value) for i in found[:-1]] == [
        (0, 1, b"one"),
        (5, 2, b""),
        (6, 3, b"two"),
        (10, 4, b"last without end"),
    ]
    assert found[0].labels == {"cluster": "prod"}
    assert found[-1] == Progress(path, 26, 26, caught_up=True)


def test_lines_without_a_stamp_are_placed_at_the_files_last_change(tmp_path: Path) -> None:
    path = written(tmp_path, "a.log", b"x\n")
    os.utime(path, (1_665_000_000, 1_665_000_000))
    (line, _) = read_path(path)
    assert line.ingested_at == datetime.fromtimestamp(1_665_000_000, UTC)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_compressed_files_read_like_plain_ones_and_are_closed(tmp_path: Path, suffix: str, pack) -> None:
    data = b"a\nb\n" * 20_000
    twice = pack(data) + pack(b"second member\n")
    path = written(tmp_path, "server.log" + suffix, twice)
    *lines, progress = read_path(path)
    assert b"".join(line.value + b"\n" for line in lines) == data + b"second member\n"
    assert progress.closed


def test_a_five_megabyte_line_and_broken_characters_survive(tmp_path: Path) -> None:
    long = b"x" * 5_000_000
    assert values(
        written(tmp_path, "a.log", b"\xff\xfe\xf0broken".replace(b"\xff\xfe", b"\xfe") + b"\n" + long + b"\nend\n")
    ) == [
        b"\xfe\xf0broken",
        long,
        b"end",
    ]


def test_an_empty_file_is_only_progress(tmp_path: Path) -> None:
    path = written(tmp_path, "empty.log", b"")
    assert list(read_path(path)) == [Progress(path, 0, 0, caught_up=True)]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(b"\x7fELF\0\0\0", "is not text"), (b"\xff\xfeh\0i\0", "is UTF-16 text; convert it with: iconv")],
)
def test_a_binary_file_is_refused_before_any_line(tmp_path: Path, data: bytes, sentence: str) -> None:
    with pytest.raises(SourceError, match=sentence):
        next(iter(read_path(written(tmp_path, "core", data))))


def test_a_damaged_archive_gives_its_good_lines_first(tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(60_000).hex().encode() + b"\n" + b"good\n" * 3, compresslevel=0)
    path = written(tmp_path, "cut.log.gz", packed[:-6])
    got: list[bytes] = []
    with pytest.raises(SourceError, match="damaged or ends early"):
        for item in read_path(path):
            got.append(item.value)
    assert got[1:] == [b"good"] * 3


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such file"):
        next(iter(read_path(str(tmp_path / "none.log"))))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_denied(tmp_path: Path) -> None:
    path = written(tmp_path, "secret.log", b"x\n")
    Path(path).chmod(0)
    with pytest.raises(SourceDenied, match="no permission"):
        next(iter(read_path(path)))


def test_standard_input_is_a_source_named_stdin() -> None:
    line, progress = read_path(STDIN, stdin=io.BufferedReader(io.BytesIO(b"hello\n")))
    assert (line.source_id, line.value, progress.read_to) == ("stdin", b"hello", 6)
    assert line.ingested_at is not None


def test_a_hash_in_a_path_is_no_container(tmp_path: Path) -> None:
    line, _ = read_path(written(tmp_path, "a#b.log", b"x\n"))
    assert line.source_id == str(tmp_path / "a%23b.log")


def test_directories_are_walked_in_order_without_stories_and_hidden_files(tmp_path: Path) -> None:
    for name in ("b/server.log", "a/x.log.1", "a/.swp", ".git/config", "story.md", "expected.yml", "z.yaml"):
        written(tmp_path, name, b"x\n")
    found = find([str(tmp_path)])
    assert found.files == (str(tmp_path / "a/x.log.1"), str(tmp_path / "b/server.log"))
    assert find([str(tmp_path / "story.md")]).files, "a named file is read whatever its suffix"


def test_every_missing_input_is_reported_and_the_good_ones_stay(tmp_path: Path) -> None:
    good = written(tmp_path, "good.log", b"x\n")
    (tmp_path / "empty").mkdir()
    found = find([str(tmp_path / "no.log"), good, good, str(tmp_path / "*.none"), str(tmp_path / "empty")])
    assert found.files == (good,)
    assert [str(error).removeprefix(str(tmp_path)) for error in found.errors] == [
        "/no.log: there is no such file",
        "/*.none: no file matches",
        "/empty: holds no log files",
    ]


def test_the_same_content_twice_is_found_also_when_compressed(tmp_path: Path) -> None:
    body = b"line\n" * 5000
    a, b, c, d, e = (
        written(tmp_path, name, data)
        for name, data in [
            ("a.log", body),
            ("b.log", body + b"more\n"),
            ("c.log.gz", gzip.compress(body)),
            ("d.log", b""),
            ("e.log", b""),
        ]
    )
    assert same_content([a, b, c, d, e, STDIN]) == {c: a}


@given(st.lists(st.binary(max_size=20).map(lambda value: value.replace(b"\n", b"").replace(b"\0", b"")), max_size=8))
def test_offsets_point_at_the_lines_in_the_file(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    data = b"head\n" + b"\n".join(parts)
    path = written(tmp_path_factory.mktemp("h"), "x.log", data)
    for item in read_path(path):
        if isinstance(item, RawLine):
            assert data[item.offset :].startswith(item.value)
            assert data[: item.offset].count(b"\n") == item.number - 1


def test_a_folder_that_cannot_be_listed_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "denied/a.log", b"a\n")
    good = written(tmp_path, "open/b.log", b"b\n")
    listed = os.scandir

    def denying(path: str) -> object:
        if str(path).endswith("denied"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", denying)
    found = find([str(tmp_path)])
    assert found.files == (good,)
    assert [type(error) for error in found.errors] == [SourceDenied]
    found = find([str(tmp_path / "denied")])
    assert [str(error) for error in found.errors] == [
        f"{tmp_path}/denied: no permission to read it; run as a user that may, or change its mode"
    ]


@pytest.mark.parametrize("refusal", [PermissionError(13, "Permission denied"), OSError(36, "File name too long")])
def test_a_path_that_may_not_be_looked_at_is_one_clear_sentence(
    tmp_path: Path, refusal: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = written(tmp_path, "a.log", b"a\n")
    denied = str(tmp_path / "denied" / "b.log")
    (tmp_path / "link.log").symlink_to(denied)
    looked_at = os.stat

    def denying(path: str | Path | int, **how: bool) -> os.stat_result:
        if not isinstance(path, int) and str(path) in (denied, str(tmp_path / "link.log")):
            raise refusal
        return looked_at(path, **how)

    monkeypatch.setattr(os, "stat", denying)
    found = find([denied, str(tmp_path / "*.log"), good])
    assert found.files == (good, str(tmp_path / "link.log"))
    assert [str(error).partition(":")[0] for error in found.errors] == [denied]
    assert same_content(found.files) == {}
    intake = Intake([denied, str(tmp_path / "link.log"), good], {})
    assert [line.value for line in intake.lines() if isinstance(line, RawLine)] == [b"a"]
    assert [sentence.partition(":")[0] for sentence in intake.refused] == [denied, str(tmp_path / "link.log")]
