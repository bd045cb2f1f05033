"""The screen finds the same whether its database is new, kept, damaged or of another version; so it is with signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import choices
from string import ascii_letters

import hyperscan
import pytest
from msgspec.structs import replace

from engine.match.digits import ALIKE
from engine.match.screen import Borne, Screen
from engine.match.signs import Signs, signs_in, signs_of
from engine.model.expressions import NameExpression
from engine.model.rules import Item, Plan, Test
from tests.building import plan, signature

COUNTED, NAMED = Signs((r"disk\s+full",)), Signs((r"broker=[0-9]+\]",), whole=True)
TEXT = b"[a broker=1] x\nquiet\n[a broker=22] disk  full\n"
BEGINS = [0, 15, 21]


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


def found(kept: Kept) -> Sequence[tuple[int, Borne]]:
    return Screen([COUNTED], [NAMED], kept).bearing(TEXT.translate(ALIKE), BEGINS)


def bearing(screen: Screen, *events: str) -> list[int]:
    """The numbers of the events that may bear something."""
    text = [f"{event}\n".encode() for event in events]
    return [
        number for number, _ in screen.bearing(b"".join(text).translate(ALIKE), [*accumulate(map(len, text), initial=0)][:-1])
    ]


def test_what_only_counts_as_said_is_told_with_its_place() -> None:
    assert found(Kept()) == [(0, Borne(False, ((3, 12),))), (2, Borne(True, ((3, 13),)))]


@pytest.mark.parametrize("database", [True, False])
def test_events_that_are_remembered_bear_the_same(database: bool) -> None:
    screen = Screen([COUNTED], [NAMED], database=database)
    for number in range(3):
        events = [f"[a broker={number}] x", f"quiet {number}", f"{number} disk full", f"once {'i' * number}"]
        assert bearing(screen, *events) == [0, 2]


def test_a_sign_that_tells_digits_apart_is_found_whatever_they_are() -> None:
    screen = Screen([Signs((r"error 3[56]\b", r"\[::1\]"))])
    assert bearing(screen, "error 35", "error 99", "error 3", "error x", "[::1]", "[::2]") == [0, 1, 4, 5]


def test_a_sign_that_goes_on_from_one_event_to_the_next_hides_nothing() -> None:
    screen = Screen([], [Signs((r"broker=[^\]]*\]",), whole=True)])
    text = b"broker= \nbroker=1]\n".translate(ALIKE)
    assert screen.bearing(text, [0, 9])[-1] == (1, Borne(True, ()))


def test_what_is_never_said_again_is_not_remembered_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.match.screen.KNOWN_BYTES", 2_000)
    screen = Screen([COUNTED], [NAMED])
    for number in range(60):
        new = "".join(choices(ascii_letters, k=30))
        assert bearing(screen, new, f"disk full {new}", f"[a broker={number}] {new}") == [1, 2]
    for _ in range(200):
        assert bearing(screen, "disk full", "quiet", "broker=7]") == [0, 2]


def test_a_sign_that_is_not_understood_makes_it_incomplete() -> None:
    assert Screen([COUNTED], [NAMED]).complete
    for sign in (Signs(), Signs((r"\Qa.b\E",)), Signs(("é",))):
        assert not Screen([COUNTED, sign], [NAMED]).complete


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


def test_the_hyperscan_that_is_installed_finds_what_newer_ones_lose() -> None:
    """0.7.23 to 0.9.1 find nothing here when both expressions are in one database."""
    signs = Signs(("/[0-9]+ brokers are down", "/[0-9]+: Receive failed: (?:Disconnected|Connection reset by peer)"))
    line = "%4|1646|ERROR|rdkafka#producer-0| [thrd:app]: rdkafka#producer-0| 0/0 brokers are down"
    assert bearing(Screen([signs]), line) == [0]


def test_matches_that_hyperscan_loses_are_noticed_and_re2_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("engine.match.screen.AUDIT_EVERY", 3)
    monkeypatch.setattr("engine.match.screen._hyperscan", lambda *_: lambda text: [])
    screen = Screen([COUNTED])
    assert [bearing(screen, f"disk full {name}", "quiet") for name in "abcd"] == [[], [], [0], [0]]
    assert screen.lost == 1
    assert "Hyperscan loses matches" in caplog.text


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


@pytest.mark.parametrize("database", [True, False])
def test_alternatives_of_an_expression_may_share_a_name(database: bool) -> None:
    test = Test("text", "re", regex=r"lost (?P<what>topic)|lost (?P<what>group)")
    signs = signs_of([Item("i", ((test,),))], NameExpression("i"))
    assert [re.compile(regex).groups for regex in signs.regexes] == [0], "it has no names, which others than RE2 would refuse"
    screen = Screen([signs], database=database)
    assert bearing(screen, "lost topic", "lost time", "lost group") == [0, 2]
