"""The prefilter finds the same with Hyperscan and RE2, whether its database is new, stored, damaged or of another version."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import hyperscan
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.match import prefilter
from engine.match.prefilter import Prefilter
from engine.model.signs import folded
from tests.rulepack.playing import plan

SIGNS = ("disk full", "broker=0]", "채널", "strasse", "a.b(c)", "[x", "0 is\\gone")


@dataclass
class Stored:
    """A cache in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    stored: int = 0

    def load(self, name: str) -> bytes | None:
        return self.files.get(name)

    def store(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self.stored += 1


@pytest.mark.parametrize("with_hyperscan", [True, False])
def test_signs_are_found_in_folded_text(with_hyperscan: bool) -> None:
    signs = Prefilter(SIGNS, hyperscan=with_hyperscan)
    for text, expected in (
        ("[a Broker=7] x", {"broker=0]"}),
        ("Disk \t\n FULL, disk full", {"disk full"}),
        ("Straße 채널 a.b(c)[x", {"strasse", "채널", "a.b(c)", "[x"}),
        ("5 is\\gone", {"0 is\\gone"}),
        ("axb(c) quiet", set()),
        ("", set()),
        ("broker=10]", set()),
    ):
        assert signs.signs_in(text.encode()) == expected


@given(
    st.lists(st.text("ab0 é", min_size=1, max_size=4).map(lambda text: folded(text.encode()).decode())),
    st.text("ab1 é\n", max_size=30),
)
def test_both_find_every_sign(signs: list[str], text: str) -> None:
    expected = {sign for sign in signs if sign.encode() in folded(text.encode())}
    for with_hyperscan in (True, False):
        assert Prefilter(signs, hyperscan=with_hyperscan).signs_in(text.encode()) == expected


def test_without_signs_nothing_is_found() -> None:
    assert Prefilter(()).signs_in(b"anything") == frozenset()


def test_a_stored_database_is_used() -> None:
    cache = Stored()
    for _ in range(2):
        assert Prefilter(SIGNS, cache).signs_in(b"disk full") == {"disk full"}
    assert cache.stored == 1


def test_a_damaged_database_is_compiled_again() -> None:
    cache = Stored()
    Prefilter(SIGNS, cache).signs_in(b"x")
    (whole,) = cache.files.values()
    for damage in (b"", b"x", b"\0" * 5000, whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        cache.files = dict.fromkeys(cache.files, damage)
        assert Prefilter(SIGNS, cache).signs_in(b"disk full") == {"disk full"}


def test_another_version_has_a_database_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Stored()
    Prefilter(SIGNS, cache).signs_in(b"x")
    monkeypatch.setattr(hyperscan, "__version__", "0.0.1")
    Prefilter(SIGNS, cache).signs_in(b"x")
    assert len(cache.files) == 2


def test_where_hyperscan_is_not_installed_re2_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "_library", lambda: None)
    assert Prefilter(SIGNS).signs_in(b"disk full") == {"disk full"}


def test_matches_that_hyperscan_loses_are_noticed_and_re2_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prefilter, "AUDIT_EVERY", 3)
    monkeypatch.setattr(prefilter._Database, "search", lambda *_: ())
    signs = Prefilter(SIGNS)
    assert [len(signs.signs_in(b"disk full")) for _ in range(5)] == [0, 0, 1, 1, 1]
    assert signs.lost == 1
    assert "Hyperscan loses matches" in caplog.text


def test_threads_may_share_one() -> None:
    signs, failures = Prefilter(SIGNS), list[str]()

    def search(number: int) -> None:
        for _ in range(2000):
            if signs.signs_in(b"quiet disk full" if number % 2 else b"quiet") != ({"disk full"} if number % 2 else set()):
                failures.append("wrong")

    threads = [threading.Thread(target=search, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_every_shipped_rule_has_signs() -> None:
    assert [signature.rule.id for signature in plan().signatures if not signature.signs] == []
