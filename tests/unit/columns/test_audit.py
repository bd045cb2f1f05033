"""The audit finds where columns and the reference differ, and shows the smallest input for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.cache import DiskCache
from engine.columns import reading
from engine.columns.audit import Audit
from engine.columns.by_line import LineStages
from engine.columns.matches import EventMatches
from engine.columns.reading import LearntTexts, Reader
from engine.match import Matcher
from engine.match.activity import ActivityTracker
from engine.match.prefilter import Prefilter
from engine.model.matches import Match
from engine.parse import Assembler
from engine.ports import Chunk
from tests.rulepack.playing import plan

QUIET = "[2022-10-05 17:{m:02d}:{s:02d},000] INFO Rolled new log segment at offset {n} in 3 ms. (kafka.log.Log)\n"
TROUBLE = (
    "[2022-10-05 17:{m:02d}:{s:02d},000] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-{n} "
    "(k.s.ReplicaManager)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) "
    "is insufficient to satisfy the min.isr requirement of 2 for partition a-{n}, password={n}secret\n"
)


def log(events: int = 200) -> Chunk:
    texts = (TROUBLE if number % 40 == 17 else QUIET for number in range(events))
    rows = (text.format(m=number // 60, s=number % 60, n=1000 + number) for number, text in enumerate(texts))
    return Chunk("a.log", 0, "".join(rows).encode(), 1, None, {"cluster": "x"})


def reader() -> Reader:
    matcher = Matcher(plan(), DiskCache())
    stages = LineStages(plan(), matcher, Assembler(plan().formats), ActivityTracker())
    return Reader(LearntTexts(plan(), matcher), stages)


def audited(reader: Reader, every: int = 1, blocks: int = 1) -> Audit:
    audit = Audit(plan(), every)
    for _ in range(blocks):
        list(reader.read([log()]))
        audit.block(reader, [log()])
    return audit


def test_where_both_say_the_same_there_is_no_difference() -> None:
    audit = audited(reader(), every=2, blocks=3)
    assert (audit.blocks, audit.differences) == (2, [])


def test_a_difference_comes_with_the_smallest_input(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = reading.matches_of

    def named(match: Match) -> bool:
        return match.rule_id.endswith("/names")

    def losing(*arguments: object) -> Iterator[EventMatches]:
        results = list(truth(*arguments))  # type: ignore[arg-type]
        yield from ((event, [match for match in matches if match.number < 180 or named(match)]) for event, matches in results)

    monkeypatch.setattr(reading, "matches_of", losing)
    (difference,) = audited(reader()).differences
    assert "a-1177 " in difference.lines[0]
    assert len(difference.lines) <= 3, "the event, and the next one, without which it is the open one"
    assert all(fact.startswith("unmatched ") for fact in difference.columns)
    assert all(fact.startswith("match ") for fact in difference.reference)


def test_a_report_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "matches_of", lambda *_: iter(()))
    (difference,) = audited(reader()).differences
    sentence = difference.sentence(Matcher(plan()).redact)
    assert "columns and the reference differ" in sentence
    assert "[ReplicaManager broker=1]" in sentence
    assert "password=1" not in sentence


def test_an_error_of_columns_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = reader()
    list(broken.read([log()]))
    monkeypatch.setattr(reading, "events_of", lambda *_: 1 / 0)
    audit = Audit(plan(), 1)
    audit.block(broken, [log()])
    (difference,) = audit.differences
    assert difference.columns == ("error ZeroDivisionError('division by zero')",)


def test_signs_that_the_prefilter_misses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.columns.classes.Classes._may_match", lambda *_: False)
    assert audited(reader()).differences
    assert Prefilter(("x",)).signs_in(b"x") == {"x"}
