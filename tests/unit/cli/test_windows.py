"""The time that a scan judges, and the zone in which it shows times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from engine.cli.main import main
from engine.cli.windows import TimeWindow, shown_in, window_of
from engine.errors import UsageError
from engine.model.matches import ActivitySpan, Match
from engine.model.phrases import moment
from engine.model.records import Progress
from tests.unit.cli.incidents import TOO_LARGE

NOW = datetime(2024, 1, 2, tzinfo=UTC)
SEOUL = ZoneInfo("Asia/Seoul")
STORY = Path(__file__).parents[3] / "samples" / "4-silent-broker"


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def match(hours: float, rule: str = "r", dated: bool = True) -> Match:
    return Match(rule, "e", "s", 1, at(hours), dated)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2h", at(-2)),
        ("2024-01-01T00:00", datetime(2023, 12, 31, 15, tzinfo=UTC)),
        ("2024-01-01", datetime(2023, 12, 31, 15, tzinfo=UTC)),
        ("2024-01-01T00:00:00Z", datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_bounds(text: str, time: datetime) -> None:
    assert window_of(text, "", SEOUL, NOW) == TimeWindow(time)
    assert window_of("", text, SEOUL, NOW) == TimeWindow(None, time)


@pytest.mark.parametrize(("since", "until"), [("soon", ""), ("", "25:00"), ("1h", "2h"), ("2024-01-01", "2024-01-01")])
def test_what_is_no_window_is_refused(since: str, until: str) -> None:
    with pytest.raises(UsageError):
        window_of(since, until, SEOUL, NOW)


def test_what_is_outside_is_left_out_and_spans_are_cut() -> None:
    window, progress = TimeWindow(at(0), at(2)), Progress("s", 1, 1, caught_up=True)
    items = [
        match(-1),
        match(0),
        match(2),
        match(1, dated=False),
        match(-9, "component:broker/names"),
        match(-9, "component:broker/heartbeat"),
        ActivitySpan("s", at(-3), at(1)),
        ActivitySpan("s", at(-3), at(-1)),
        progress,
    ]
    assert [*window.within(items)] == [
        match(0),
        match(0, "component:broker/names"),
        ActivitySpan("s", at(0), at(1)),
        progress,
    ]
    assert [*TimeWindow().within(items)] == items


def test_times_are_shown_in_a_zone() -> None:
    assert TOO_LARGE.first_seen is not None
    assert moment(TOO_LARGE.first_seen) == "2023-02-03 02:05:02 UTC"
    shown = shown_in(TOO_LARGE, SEOUL)
    assert shown.first_seen == TOO_LARGE.first_seen
    assert moment(shown.first_seen) == "2023-02-03 11:05:02 KST"


def scanned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["scan", str(STORY), "--tz", "Asia/Seoul", *arguments])
    return code, capsys.readouterr().out


def test_a_scan_judges_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, "--until", "2022-10-05T16:00")
    assert (code, ", before 2022-10-05 16:00:00 KST." in out.splitlines()[0]) == (0, True)
    code, out = scanned(capsys, "--since", "2022-10-05T17:00", "--display-tz", "Europe/Berlin")
    assert (code, "since 2022-10-05 10:05:39 CEST" in out) == (1, True)
    _, out = scanned(capsys, "--format", "json")
    assert json.loads(out)["incidents"][0]["first_seen"].startswith("2022-10-05T08:05:39")
    assert main(["scan", str(STORY), "--display-tz", "Seoul"]) == 2
    assert "--display-tz takes a zone" in capsys.readouterr().err


def hourly(folder: Path, lines: int) -> Path:
    """Return a log in which one of four lines is of 2024-01-02, the others of the day before."""
    stamps = [f"2024-01-0{2 if number >= lines * 3 // 4 else 1} 00:00:00,{number % 1000:03}" for number in range(lines)]
    path = folder / "server.log"
    path.write_text("".join(f"[{stamp}] INFO nothing to see {'x' * 60} (x.Y)\n" for stamp in stamps), encoding="utf-8")
    return path


@pytest.mark.parametrize("lines", [8, 8_000])  # line by line, and in columns
def test_only_what_is_in_the_window_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: int) -> None:
    log, other = hourly(tmp_path, lines), tmp_path / "other.log"
    other.write_text("[2024-01-01 00:00:00,000] INFO nothing to see (x.Y)\n" * 3, encoding="utf-8")
    assert main(["scan", str(log), str(other), "--since", "2024-01-02"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Nothing found in {lines // 4:,} events of 1 source, from 2024-01-02 00:00:00 UTC on.")


@pytest.mark.parametrize("lines", [8, 8_000])
def test_a_window_without_a_line_is_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: int) -> None:
    assert main(["scan", str(hourly(tmp_path, lines)), "--since", "2024-02-01", "--display-tz", "Asia/Seoul"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    gap = "no line lies in it (lines are from 2024-01-01 09:00:00 KST to 2024-01-02 09:00:00 KST)"
    assert out.startswith("Not judged: the time from 2024-02-01 09:00:00 KST on: ") and gap in out
    assert "othing found" not in out
