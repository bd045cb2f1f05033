"""Dead letters in the ledger: the newest are kept, and one from the same place is one."""

from __future__ import annotations

from msgspec.structs import replace

from engine.model.quarantine import DeadLetter
from engine.store import Store
from engine.store.ledger import MAX_LETTERS
from engine.store.store import BatchId
from tests.building import at

LETTER = DeadLetter("match", "a.log", 7, 3, 1, 1, "", "ValueError: no", "a line\x1b[31m", at(0))


def test_the_newest_are_kept_and_one_from_the_same_place_is_one(address: str) -> None:
    store = Store.open(address)
    many = [replace(LETTER, offset=n, at=at(n)) for n in range(MAX_LETTERS + 50)]
    for number in (1, 1, 2):  # a batch comes again after a crash
        with store.batch(BatchId("q", number)) as ledger:
            ledger.put_quarantined(many, at(0))
    kept = store.quarantined()
    assert [letter.offset for letter in kept] == list(range(MAX_LETTERS + 49, 49, -1))
    store.close()
