"""A stream of the logs of several brokers is divided where that is sure; otherwise its silences are not judged."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.mixtures import Naming, StreamPart, divided, parts
from engine.dsl import builtin_rules, load_cached
from engine.model.records import RawLine
from engine.ports import Chunk

STORY = Path(__file__).parents[3] / "samples/4-silent-broker"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def scanned(
    data: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *options: str
) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))  # type: ignore[arg-type]
    code = main(["scan", "-", "--format", "json", *options])
    return code, json.loads(capsys.readouterr().out)


def logs_of_all() -> list[bytes]:
    return [path.read_bytes() for path in sorted(STORY.glob("broker-*/*"))]


def test_logs_that_follow_one_another_are_judged_as_their_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, document = scanned(b"".join(logs_of_all()), capsys, monkeypatch)
    (incident,) = document["incidents"]
    assert (code, incident["rule"], incident["labels"]["broker"]) == (1, "broker-silent", "1")
    assert (incident["evidence"][0]["source"], incident["evidence"][0]["line"]) == ("stdin#broker-1", 21)
    assert document["coverage"] == {"events": 131, "sources": 1, "processes": {"broker": 3}, "gaps": [], "window": ""}


def test_mixed_lines_are_not_divided_and_give_no_all_clear(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = sorted(line for log in logs_of_all() for line in log.splitlines(keepends=True) if line.startswith(b"[2022"))
    code, document = scanned(b"".join(lines), capsys, monkeypatch)
    assert (code, document["incidents"]) == (3, [])
    (gap,) = document["coverage"]["gaps"]
    assert gap.startswith("stdin: lines of brokers 1, 2 and 3 are mixed")


def naming(number: int, broker: str, minutes: float) -> Naming:
    return Naming(number, broker, AT + timedelta(minutes=minutes))


def line(number: int, minutes: float) -> RawLine:
    at = AT + timedelta(minutes=minutes)
    return RawLine("stdin", number * 50, f"[{at:%Y-%m-%d %H:%M:%S},000] INFO a line (x.Y)".encode(), number)


@pytest.mark.parametrize(
    ("namings", "between", "expected"),
    [
        ([naming(1, "1", 0), naming(9, "1", 50), naming(10, "2", 1)], {}, [StreamPart(1, "1"), StreamPart(10, "2")]),
        ([naming(1, "1", 0), naming(9, "2", 50), naming(10, "2", 51)], {}, []),
        ([naming(1, "1", 0), naming(2, "1", 50), naming(5, "2", 2)], {3: 55, 4: 1}, [StreamPart(1, "1"), StreamPart(4, "2")]),
        ([naming(1, "1", 0), naming(2, "1", 50), naming(5, "2", 2)], {3: 1, 4: -9}, []),
    ],
    ids=[
        "one after the other",
        "later, so perhaps mixed",
        "the border is where the time goes back",
        "two borders are possible",
    ],
)
def test_a_border_is_where_the_time_goes_back(
    namings: Sequence[Naming], between: dict[int, float], expected: Sequence[StreamPart]
) -> None:
    minutes = {n.number: (n.at - AT).total_seconds() / 60 for n in namings} | between
    lines = [line(number, at) for number, at in sorted(minutes.items())]
    plan = load_cached([builtin_rules()])
    result = parts(namings, lambda begin, end: [item for item in lines if begin <= item.number < end], plan)
    assert list(result) == expected


def test_a_chunk_is_cut_between_lines() -> None:
    chunk = Chunk("stdin", 100, b"a\nbb\nccc\nd", 7, end=110)
    pieces = [item for item in divided([chunk], {"stdin": [StreamPart(1, "1"), StreamPart(9, "2")]}) if isinstance(item, Chunk)]
    assert [(p.source_id, p.offset, p.data, p.number) for p in pieces] == [
        ("stdin#broker-1", 100, b"a\nbb\n", 7),
        ("stdin#broker-2", 105, b"ccc\nd", 9),
    ]
