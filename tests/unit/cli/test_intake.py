from __future__ import annotations

import gc
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from engine.cli import intake as module
from engine.cli.intake import Intake
from engine.cli.main import main
from engine.model.records import NEAR_LABEL, RawLine
from engine.ports import Chunk
from tests.containers import make_docker_log


def read(intake: Intake) -> list[tuple[str, bytes]]:
    return [(line.source_id, line.value) for line in intake.lines() if isinstance(line, RawLine)]


def test_what_is_good_is_read_and_what_is_bad_is_told(tmp_path: Path) -> None:
    good, binary, empty = tmp_path / "good.log", tmp_path / "core", tmp_path / "empty.log"
    good.write_bytes(b"one\ntwo \xff\xfe broken\n")
    binary.write_bytes(b"\x7fELF\0\0")
    empty.write_bytes(b"")
    intake = Intake([str(tmp_path / "gone.log"), str(binary), str(empty), str(good)], {})
    assert read(intake) == [(str(good), b"one"), (str(good), b"two \xff\xfe broken")]
    assert intake.refused == [f"{tmp_path}/gone.log: there is no such file", f"{binary}: is not text (it holds NUL bytes)"]
    assert intake.notes == [*intake.refused, f"{empty}: is empty"]


def test_a_damaged_file_gives_what_can_be_read_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"first line\n" * 10_000)[:-20])
    intake = Intake([str(path)], {})
    assert read(intake)[0] == (str(path), b"first line")
    assert "damaged or ends early" in intake.refused[0]


def test_the_same_content_is_read_once(tmp_path: Path) -> None:
    first, again = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(b"one\n")
    again.write_bytes(b"one\n")
    intake = Intake([str(first), str(again)], {})
    assert read(intake) == [(str(first), b"one")]
    assert intake.notes == [f"{again}: same content as {first}; read once"]
    assert intake.refused == []


def test_every_line_bears_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    (line,) = (line for line in Intake([str(path)], {"cluster": "prod"}).lines() if isinstance(line, RawLine))
    assert line.labels["cluster"] == "prod"


def test_the_log_of_a_container_has_its_labels_and_no_file_beside_it_is_read(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "shop-kafka-1", labels={"com.docker.compose.service": "kafka"})
    log.write_text("one\n")
    intake = Intake([str(tmp_path)], {"image": "mine"})
    (line,) = (line for line in intake.lines() if isinstance(line, RawLine))
    assert line.source_id == "docker/shop-kafka-1.log"
    assert line.labels == {"container": "shop-kafka-1", "compose_service": "kafka", "image": "mine"}
    assert intake.notes == []


def test_large_input_shows_a_bar_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"line\n" * 20_000)
    monkeypatch.setattr(module, "BAR_FROM_BYTES", 1000)
    assert len(read(Intake([str(path)], {}))) == 20_000
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert len(read(Intake([str(path)], {}))) == 20_000
    assert "Reading" in capfd.readouterr().err


def test_a_story_from_archives_gives_the_incidents_of_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Path(__file__).parents[3] / "samples/4-silent-broker"
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(story, "story")
    with zipfile.ZipFile(tmp_path / "windows.zip", "w") as windows:
        for path in sorted(story.glob("broker-*/*")):
            windows.writestr(str(path.relative_to(story)), path.read_text(encoding="utf-8").encode("utf-16-le"))
    for name in ("logs.tar.gz", "windows.zip"):
        code = main(["scan", str(tmp_path / name), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        (incident,) = document["incidents"]
        assert (code, incident["rule"], incident["labels"]["broker"]) == (1, "broker-silent", "1")
        assert incident["evidence"][0]["source"].startswith(f"{tmp_path}/{name}/")
        assert incident["evidence"][0]["line"] == 3


def test_what_was_unpacked_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("a.log", "a line\n")
    intake = Intake([str(tmp_path / "logs.zip")], {})
    assert [line.value for line in intake.lines() if isinstance(line, RawLine)] == [b"a line"]
    assert list((tmp_path / "temporary").iterdir())
    del intake
    gc.collect()
    assert not list((tmp_path / "temporary").iterdir())


def test_a_folder_without_logs_says_what_it_skipped(tmp_path: Path) -> None:
    for name in ("a.md", "b.yml", ".hidden"):
        (tmp_path / name).write_text("x\n")
    (sentence,) = Intake([str(tmp_path)], {}).refused
    reason = "Markdown, YAML and hidden files are read only when they are named"
    assert sentence == f"{tmp_path}: holds no log files (3 files were skipped: {reason})"


def sources_of(*paths: str) -> dict[str, bytes]:
    """Return what a scan reads of each source."""
    texts: dict[str, bytes] = {}
    for item in Intake(paths, {}).chunks():
        if isinstance(item, Chunk):
            texts[item.source_id] = texts.get(item.source_id, b"") + item.data
    return texts


def test_what_comes_through_a_pipe_is_unpacked_and_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"[2023-02-03 02:05:02,285] ERROR something broke (x.Y)\n"
    found = b"a/server.log:" + line + b"b/server.log:" + line.replace(b"02,285", b"03,285")
    for data, sources in (
        (found, ["stdin/a/server.log", "stdin/b/server.log"]),
        (gzip.compress(line), ["stdin"]),
        (line.decode().encode("utf-16"), ["stdin"]),
        (b"Help!\n\n```\n" + line + b"```\n", ["stdin"]),
        (line, ["stdin"]),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
        texts = sources_of("-")
        assert sorted(texts) == sources
        assert all(text.strip().endswith(b"ERROR something broke (x.Y)") for text in texts.values())


def test_posts_are_read_in_a_folder_without_logs_only(tmp_path: Path) -> None:
    (tmp_path / "post.md").write_text("It broke:\n```\n2023-02-03 02:05:02 ERROR bad\n```\n")
    (tmp_path / "prose.md").write_text("nothing in here\n")
    assert [*sources_of(str(tmp_path))] == [f"{tmp_path}/post.md"]
    (tmp_path / "server.log").write_text("2023-02-03 02:05:02 ERROR bad\n")
    assert [*sources_of(str(tmp_path))] == [f"{tmp_path}/server.log"]


def test_single_files_are_read_once_more(tmp_path: Path) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    first.write_bytes(b"one\n")
    second.write_bytes(b"two\n")
    intake = Intake([str(first), str(second)], {})
    assert read(intake) == [(str(first), b"one"), (str(second), b"two")]
    assert [(chunk.source_id, chunk.data) for chunk in intake.chunks_from({str(second)})] == [(str(second), b"two\n")]
    second.unlink()
    assert list(intake.chunks_from({str(second)})) == []
    assert intake.refused == []


def test_a_file_with_lines_that_lack_the_year_names_a_day_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "mixed.log").write_text("F0716 06:25:28.912203 1 a.go:9] boom\n[sarama] 2024/07/16 06:25:28 EOF\n")
    (tmp_path / "plain.log").write_text("F0716 06:25:28.912203 1 a.go:9] boom\n")
    lines = [item for item in Intake([str(tmp_path)], {}).lines() if isinstance(item, RawLine)]
    assert {Path(line.source_id).name: line.labels.get(NEAR_LABEL) for line in lines} == {
        "mixed.log": "2024-07-16",
        "plain.log": None,
    }
