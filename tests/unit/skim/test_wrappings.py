"""What stands around all lines of a log is seen at one of them, and trusted only where the parser takes it off any line."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from engine.skim.skimmer import Skimmer
from engine.skim.wrappings import Wrapping
from tests.unit.skim.test_skim import HEADS, compiled, stamp
from tests.unit.skim.test_wrapped import cut
from tests.wrapping import DOCUMENTS, ROWS, behind, documents

pytestmark = pytest.mark.slow

AT = datetime(2022, 10, 5, 10, 0, 0, 123456, tzinfo=UTC)
LINE = "[2022-10-05 10:00:00,123] INFO Rolled new log segment at offset 7 in 3 ms. (kafka.log.Log)"


@pytest.mark.parametrize(
    ("row", "before", "behind", "container"),
    [
        ("compose", b"worker-1  | ", b"", "#worker-1"),
        ("kubectl", b"[pod/kafka-0/kafka] ", b"", "#kafka-0/kafka"),
        ("cri", b"2011-11-11T11:11:11.111111111Z stdout F ", b"", ""),
        ("journal", b"Oct  5 11:11:11 broker-1 kafka[4711]: ", b"", ""),
        ("docker file", b'{"log":"', b'\\n","stream":"stderr","time":"2011-11-11T11:11:11.111111Z"}', ""),
    ],
)
def test_what_stands_around_a_line_is_seen(row: str, before: bytes, behind: bytes, container: str) -> None:
    assert compiled().sight.wrapping(ROWS[row](LINE, AT, True).encode()) == Wrapping(before, behind, container)


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "worker-1  | no stamp at all",
        "worker-1  | ",
        ROWS["cri"](LINE, AT, False),
        ROWS["docker json"](LINE, AT, False),
        f'{{"log":"{LINE}\\nand more\\n","stream":"stdout","time":"2022-10-05T10:00:00Z"}}',
    ],
    ids=["none", "no stamp", "empty", "a part", "a part in JSON", "two lines"],
)
def test_what_is_not_the_same_around_every_line_is_left_to_the_parser(line: str) -> None:
    assert compiled().sight.wrapping(line.encode()) is None


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_a_program_s_own_document_is_no_wrapping(name: str) -> None:
    (document,) = documents([LINE], DOCUMENTS[name], random=Random(1), odd=0.0)
    assert compiled().sight.wrapping(document.encode()) is None


def test_only_lines_that_may_matter_are_unwrapped_by_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [HEADS[2].format(stamp(at / 10)) for at in range(600)]
    wrapped = "\n".join(behind(lines, ROWS["docker file"], Random(1), 0.0)).encode()
    skimmer, unwrapped = Skimmer(compiled().sight), []
    real = skimmer._record
    monkeypatch.setattr(skimmer, "_record", lambda raw: unwrapped.append(raw) or real(raw))
    read = list(skimmer.read(cut(wrapped, [])))
    assert len(read) < 20
    assert len(unwrapped) < 150, "a stamp loses zeros at its end: the first line of each length is looked at"
