"""The screen finds the same whether its database is new, kept, damaged or of another version; so it is with signs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import hyperscan
import pytest

from engine.match.gate import Screen
from engine.match.signs import Signs, signs_in
from engine.model.rules import Plan
from tests.building import plan, signature

COUNTED, NAMED = Signs((r"disk\s+full",)), Signs((r"broker=[0-9]+\]",), whole=True)
TEXT = b"[a broker=1] x\n[a broker=22] disk  full\n"


@dataclass
class Kept:
    """A place to keep databases, in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    stored: int = 0

    def load(self, name: str) -> bytes | None:
        return self.files.get(name)

    def store(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self.stored += 1


def found(kept: Kept) -> list[tuple[int, bytes]]:
    hits = Screen([COUNTED], [NAMED], kept).hits(TEXT)
    said = dict(zip(hits.named, hits.said, strict=True))
    return [(end, said.get(number, b"")) for number, end in enumerate(hits.ends)]


def test_what_only_counts_as_said_is_told_with_its_words() -> None:
    assert found(Kept()) == [(12, b"broker=1]"), (28, b"broker=22]"), (39, b"")]


def test_a_kept_database_is_used() -> None:
    kept = Kept()
    first = found(kept)
    assert found(kept) == first
    assert kept.stored == 1


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 5000])
def test_a_damaged_database_is_made_again(damage: bytes) -> None:
    kept = Kept()
    first = found(kept)
    kept.files = dict.fromkeys(kept.files, damage)
    assert found(kept) == first
    assert kept.stored == 2


def test_a_database_cut_short_or_changed_is_made_again() -> None:
    kept = Kept()
    first = found(kept)
    (whole,) = kept.files.values()
    for damage in (whole[:-1], whole[: len(whole) // 2], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        kept.files = dict.fromkeys(kept.files, damage)
        assert found(kept) == first


def test_another_version_has_a_database_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    first = found(kept)
    monkeypatch.setattr(hyperscan, "__version__", "0.0.1")
    assert found(kept) == first
    assert len(kept.files) == 2


def hashed(*ids: str) -> Plan:
    return replace(plan(*(signature(id_) for id_ in ids)), hash="h")


def test_signs_are_read_off_a_plan_once() -> None:
    kept, whole = Kept(), hashed("first", "second")
    read = signs_in(whole)
    assert [signs_in(whole, kept), signs_in(whole, kept), signs_in(hashed("first"), kept)] == [read] * 3
    assert (kept.stored, read["second"].regexes) == (1, ("second",))


def test_signs_that_are_damaged_or_lack_a_rule_are_read_off_again() -> None:
    for stored in (b"{", b"[]", b'{"first":{"weight":"x"}}', b'{"first":{}}', b"\xff"):
        kept, whole = Kept(), hashed("first", "second")
        signs_in(whole, kept)
        kept.files = dict.fromkeys(kept.files, stored)
        assert signs_in(whole, kept) == signs_in(whole), stored
        assert kept.stored == 2


def test_what_has_no_hash_is_not_kept() -> None:
    kept = Kept()
    signs_in(plan(signature("first")), kept)
    assert not kept.files
