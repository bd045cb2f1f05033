"""What people have in hand is read: archives in bounds, and text in the encodings of Windows and of Korean systems."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.files import unpacking
from connectors.files.unpacking import Unpacking, encoding_of

LINE = "[2023-02-03 02:05:02,285] INFO nothing to see (x.Y)\n"
KOREAN = "[2023-02-03 02:05:02,285] WARN 연결이 끊어졌습니다 (x.Y)\n"


@pytest.fixture
def stage(tmp_path: Path) -> Unpacking:
    folder = tmp_path / "private"
    folder.mkdir()
    return Unpacking(lambda: folder)


def texts(unpacker: Unpacking, path: Path) -> dict[str, str]:
    """Return the text of every file that is to be read, by its name below `path`."""
    return {file.name.removeprefix(str(path)): Path(file.path).read_text() for file in unpacker.files(str(path))}


def test_an_answer_of_search_that_is_cut_off_is_a_gap(stage: Unpacking, tmp_path: Path) -> None:
    answer = {"took": 1, "timed_out": False, "hits": {"total": {"value": 3}, "hits": [{"_source": {"message": LINE}}]}}
    (tmp_path / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    assert len(texts(stage, tmp_path / "answer.json")) == 1
    assert [str(error).removeprefix(f"{tmp_path}/") for error in stage.errors] == [
        "answer.json: is no whole answer: it holds 1 of 3 documents; search for less at a time, or page by page"
    ]


def tar(mode: str, **members: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def zipped(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


LOGS = {"broker-1/server.log": LINE, "broker-2/server.log": LINE * 2}
INNER = {f"/{name}": text for name, text in LOGS.items()}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("logs.tar", tar("w", **LOGS)),
        ("logs.tgz", tar("w:gz", **LOGS)),
        ("logs.tar.bz2", tar("w:bz2", **LOGS)),
        ("logs.tar.xz", tar("w:xz", **LOGS)),
        ("logs.zip", zipped(**{name: text.encode() for name, text in LOGS.items()})),
        ("nameless", tar("w:gz", **LOGS)),
    ],
)
def test_the_members_of_an_archive_are_files(name: str, data: bytes, tmp_path: Path, stage: Unpacking) -> None:
    (tmp_path / name).write_bytes(data)
    assert texts(stage, tmp_path / name) == INNER
    assert (stage.notes, stage.errors) == ([], [])


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress, gzip.compress], ids=["xz", "bz2", "gz without its suffix"])
def test_a_compressed_file_is_one_file(pack: Callable[[bytes], bytes], tmp_path: Path, stage: Unpacking) -> None:
    (tmp_path / "server.log.1.packed").write_bytes(pack(LINE.encode()))
    assert texts(stage, tmp_path / "server.log.1.packed") == {"": LINE}


def test_archives_in_archives_are_read_one_level_deep(tmp_path: Path, stage: Unpacking) -> None:
    inner = zipped(**{"in.zip": zipped(**{"a.log": LINE.encode(), "in.zip": zipped(**{"b.log": b"x"})})})
    (tmp_path / "out.zip").write_bytes(inner)
    assert texts(stage, tmp_path / "out.zip") == {"/in.zip/a.log": LINE}
    assert [str(error) for error in stage.errors] == [
        f"{tmp_path}/out.zip/in.zip/in.zip: is an archive in an archive in an archive; unpack the outer one first"
    ]


def test_no_name_or_link_leads_out_of_the_folder(tmp_path: Path, stage: Unpacking) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        info = tarfile.TarInfo("../../../evil.log")
        info.size = len(LINE)
        archive.addfile(info, io.BytesIO(LINE.encode()))
    (tmp_path / "evil.tar").write_bytes(data.getvalue())
    (file,) = stage.files(str(tmp_path / "evil.tar"))
    assert Path(file.path).resolve().is_relative_to(tmp_path / "private")


def test_a_bomb_is_refused_and_what_came_before_it_is_read(
    tmp_path: Path, stage: Unpacking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "RATIO_FROM_BYTES", 1 << 20)
    (tmp_path / "bomb.zip").write_bytes(zipped(**{"a.log": LINE.encode(), "b.log": b"\n" * (20 << 20)}))
    assert texts(stage, tmp_path / "bomb.zip") == {"/a.log": LINE}
    assert "unpacks to more than 1,000 times its size" in str(stage.errors[0])


@pytest.mark.parametrize(("bound", "value"), [("MOST_BYTES", 60), ("MOST_MEMBERS", 1)])
def test_size_and_number_are_bounded(
    bound: str, value: int, tmp_path: Path, stage: Unpacking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, bound, value)
    (tmp_path / "logs.tar").write_bytes(tar("w", **LOGS))
    assert list(texts(stage, tmp_path / "logs.tar")) == ["/broker-1/server.log"]
    assert len(stage.errors) == 1


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path, stage: Unpacking) -> None:
    data = tar("w", **{"a.log": LINE, "b.log": LINE * 300})
    (tmp_path / "logs.tar").write_bytes(data[:2000])
    assert "/a.log" in texts(stage, tmp_path / "logs.tar")
    assert "is damaged or ends early" in str(stage.errors[0])


def test_what_is_skipped_is_counted(tmp_path: Path, stage: Unpacking) -> None:
    (tmp_path / "logs.tar").write_bytes(tar("w", **{"README.md": "x", "a.log": LINE}))
    assert texts(stage, tmp_path / "logs.tar") == {"/a.log": LINE}
    assert stage.notes == [
        f"{tmp_path}/logs.tar: 1 file skipped: Markdown, YAML and hidden files are read only when they are named"
    ]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (LINE.encode("utf-16"), "utf-16"),
        (LINE.encode("utf-16-le"), "utf-16-le"),
        (KOREAN.encode("utf-16-be"), "utf-16-be"),
        (KOREAN.encode("cp949"), "cp949"),
        (KOREAN.encode(), None),
        (LINE.encode(), None),
        ("[2023-02-03] WARN la connexion a été coupée\n".encode("latin-1"), None),
        (b"\0" * 64, None),
        (bytes(range(256)) * 8, None),
    ],
)
def test_encodings_are_recognised(data: bytes, encoding: str | None, tmp_path: Path, stage: Unpacking) -> None:
    assert encoding_of(data) == encoding
    (tmp_path / "a.log").write_bytes(data * 3)
    (file,) = stage.files(str(tmp_path / "a.log"))
    if encoding is not None:
        assert Path(file.path).read_text() == data.decode(encoding) * 3 or encoding == "utf-16"
