"""A source that asks: rounds write what they learn, failures write nothing and are known, and batches read the same lines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import Struct

from engine.asking import AskingSource, Rounds, pause_s, stamped
from engine.errors import DataLoss, NoAnswer, SourceAway

AT = datetime(2026, 11, 26, 22, 11, 25, 123456, tzinfo=UTC)
STAMP = "2026-11-26T22:11:25.123456000Z"


class Numbers(Struct, frozen=True):
    values: tuple[int, ...]


class Counting:
    """A server with numbers, which tells those that are new; `answers` are its next ones, an error is raised."""

    resource = "http://numbers"
    inventory = Numbers

    def __init__(self, *answers: tuple[int, ...] | Exception) -> None:
        self.answers, self.asked, self.wholes = list(answers), threading.Semaphore(0), list[bool]()

    def ask(self, before: Numbers | None, whole: bool) -> tuple[Numbers, Sequence[str]]:
        self.wholes.append(whole)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.release()
        if isinstance(answer, Exception):
            raise answer
        known = before.values if before is not None and not whole else ()
        return Numbers(answer), [f"{len(answer)} numbers", *(f"new {n}" for n in answer if n not in known)]

    def close(self) -> None:
        self.closed = True


def rounds_of(asker: Counting, folder: Path, record: str = "", at: Callable[[], datetime] = lambda: AT) -> Rounds[Numbers]:
    return Rounds(asker, folder / "answers", record, at)


def source_of(asker: Counting, folder: Path, **more: object) -> AskingSource[Numbers]:
    options = {"every_s": 0.001, "labels": {"cluster": "prod"}, "wall": lambda: AT, **more}
    return AskingSource(asker, "numbers/n:1", str(folder / "answers"), **options)  # type: ignore[arg-type]


def read(source: AskingSource[Numbers], start: int, end: int) -> list[str]:
    slices = source.partitions({"at": start}, {"at": end})
    chunks = [chunk for slice_ in slices for chunk in source.chunks(slice_)]
    return [line.removeprefix(f"{STAMP} ") for chunk in chunks for line in chunk.data.decode().splitlines()]


def written(folder: Path) -> list[str]:
    source = source_of(Counting(()), folder)
    return read(source, 0, source._spool.end())


def test_every_physical_line_bears_the_time_of_its_round() -> None:
    assert stamped(["a", "b\nc"], AT + timedelta(0)).decode() == f"{STAMP} a\n{STAMP} b\n{STAMP} c\n"
    east = AT.astimezone(tz=None)
    assert stamped(["a"], east).decode() == f"{STAMP} a\n"


@pytest.mark.parametrize(
    ("every_s", "failures", "pause"), [(30, 0, 30), (30, 4, 30), (30, 5, 60), (30, 6, 120), (30, 99, 120), (300, 9, 300)]
)
def test_pauses_grow_with_failures(every_s: float, failures: int, pause: float) -> None:
    assert pause_s(every_s, failures) == pause


def test_a_round_writes_what_has_changed_and_all_of_it_every_hour(tmp_path: Path) -> None:
    asker, times = Counting((1,), (1, 2), (1, 2)), [AT, AT + timedelta(minutes=59), AT + timedelta(hours=1)]
    rounds = rounds_of(asker, tmp_path, at=lambda: times.pop(0))
    for _ in range(3):
        rounds.ask(0)
    assert asker.wholes == [True, False, True]
    lines = [line.partition(" ")[2] for line in written(tmp_path)[1:]]
    assert written(tmp_path)[:2] == ["1 numbers", "new 1"]
    assert lines[1:] == ["2 numbers", "new 2", "2 numbers", "new 1", "new 2"]


def test_a_clock_that_is_set_back_does_not_end_the_hourly_picture(tmp_path: Path) -> None:
    asker, times = Counting((1,)), [AT, AT - timedelta(days=1)]
    rounds = rounds_of(asker, tmp_path, at=lambda: times.pop(0))
    rounds.ask(0)
    rounds.ask(0)
    assert asker.wholes == [True, True]


def test_the_run_after_compares_with_the_one_before(tmp_path: Path) -> None:
    rounds_of(Counting((1, 2)), tmp_path).ask(0)

    class Restarted(Counting):
        def ask(self, before: Numbers | None, whole: bool) -> tuple[Numbers, Sequence[str]]:
            assert before == Numbers((1, 2))
            return super().ask(before, whole)

    again = Restarted((2,))
    rounds_of(again, tmp_path).ask(0)
    assert again.wholes == [True]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (SourceAway("n", "does not answer"), "does not answer"),
        (ValueError("not a number"), "its answer cannot be used (ValueError: not a number); report this"),
    ],
)
def test_a_round_without_an_answer_writes_nothing_and_forgets_nothing(tmp_path: Path, error: Exception, why: str) -> None:
    rounds = rounds_of(Counting((1,), error, (1, 2)), tmp_path)
    rounds.ask(0)
    rounds.ask(0)
    assert (rounds.failures, str(rounds.failure)) == (1, why)
    assert len(written(tmp_path)) == 2
    rounds.ask(0)
    assert (rounds.failures, rounds.failure) == (0, None)
    assert written(tmp_path)[2:] == ["2 numbers", "new 2"]


def test_what_cannot_be_stored_is_a_failure_and_is_told_by_the_next_round(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("a file where the folder should be")
    rounds = rounds_of(Counting((1,)), tmp_path)
    rounds.ask(0)
    assert "its answer cannot be stored in" in str(rounds.failure)
    (tmp_path / "answers").unlink()
    rounds.ask(0)
    assert written(tmp_path) == ["1 numbers", "new 1"]


def test_what_was_told_is_not_told_again_when_only_the_inventory_could_not_be_stored(tmp_path: Path) -> None:
    rounds = rounds_of(Counting((1,)), tmp_path)
    (tmp_path / "answers" / "inventory.json").mkdir(parents=True)
    rounds.ask(0)
    assert "its answer cannot be stored in" in str(rounds.failure)
    rounds.ask(0)
    assert written(tmp_path) == ["1 numbers", "new 1", "1 numbers"]


def test_the_record_has_the_same_lines_and_may_be_rotated(tmp_path: Path) -> None:
    record = tmp_path / "asked.log"
    rounds = rounds_of(Counting((1,), (1, 2)), tmp_path, str(record))
    rounds.ask(0)
    record.rename(tmp_path / "asked.log.1")
    rounds.ask(0)
    parts = [(tmp_path / name).read_text() for name in ("asked.log.1", "asked.log")]
    assert [line.removeprefix(f"{STAMP} ") for line in "".join(parts).splitlines()] == written(tmp_path)


def test_a_record_that_cannot_be_written_does_not_stop_the_asking(tmp_path: Path) -> None:
    source = source_of(Counting((1,)), tmp_path, record=str(tmp_path), final=True)
    end = source.latest(source.initial())
    assert read(source, 0, end["at"]) == ["1 numbers", "new 1"]
    (error,) = source.unreadable().values()
    assert "it cannot be written" in str(error)
    assert not isinstance(error, NoAnswer)


def test_a_server_that_hangs_delays_no_batch(tmp_path: Path) -> None:
    answered = threading.Event()

    class Hanging(Counting):
        def ask(self, before: Numbers | None, whole: bool) -> tuple[Numbers, Sequence[str]]:
            self.asked.release()
            assert answered.wait(30)
            return super().ask(before, whole)

    asker = Hanging((1,))
    source = source_of(asker, tmp_path)
    assert source.latest(source.initial()) == {"at": 0}
    assert asker.asked.acquire(timeout=30)
    assert source.latest({"at": 0}) == {"at": 0}
    assert asker.wholes == []
    source.close()
    answered.set()


def test_a_live_source_asks_on_a_thread_of_its_own_and_says_who_does_not_answer(tmp_path: Path) -> None:
    asker = Counting((1,), (1, 2), SourceAway("n", "is down"))
    source = source_of(asker, tmp_path)
    source.latest(source.initial())
    for _ in range(4):
        assert asker.asked.acquire(timeout=30)  # the round after the failure begins when that is known
    assert read(source, 0, source.latest({"at": 0})["at"]) == ["1 numbers", "new 1", "2 numbers", "new 2"]
    (error,) = source.unreadable().items()
    assert (error[0], str(error[1]), type(error[1])) == ("http://numbers", "is down", NoAnswer)
    source.close()
    assert source.unreadable() == {}
    assert asker.closed


def test_bounded_input_is_one_round_and_fails_with_it(tmp_path: Path) -> None:
    source = source_of(Counting((1,)), tmp_path, final=True)
    end = source.latest(source.initial())
    assert source.latest(end) == end
    with pytest.raises(SourceAway, match="is down"):
        source_of(Counting(SourceAway("n", "is down")), tmp_path, final=True).latest(end)


def test_a_first_run_reads_what_was_asked_before_its_first_batch_was_planned(tmp_path: Path) -> None:
    rounds_of(Counting((1,)), tmp_path).ask(0)
    source = source_of(Counting((1,)), tmp_path, final=True)
    start = source.initial()
    assert read(source, start["at"], source.latest(start)["at"])[:2] == ["1 numbers", "new 1"]


def test_answers_that_were_removed_before_they_were_read_are_a_loss(tmp_path: Path) -> None:
    source = source_of(Counting((1,)), tmp_path, final=True)
    end = source.latest(source.initial())
    for path in (tmp_path / "answers").iterdir():
        path.unlink()
    with pytest.raises(DataLoss, match="were removed"):
        read(source, 0, end["at"])
