"""The proofs that were begun, in each database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from engine.model.proofs import PROOF_RULE, Proof
from engine.store import Store, schema
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_a_proof_has_its_receiver_until_it_is_over_and_goes_with_the_next(store: Store) -> None:
    proofs = store.proofs()
    proofs.begin(Proof("aaa", "ops", NOON + timedelta(minutes=1)), NOON)
    proofs.begin(Proof("bbb", "", NOON + timedelta(minutes=9)), NOON)
    assert proofs.receivers(NOON) == {"aaa": "ops"}
    assert proofs.receivers(NOON + timedelta(minutes=1)) == {}
    proofs.begin(Proof("ccc", "ops", NOON + timedelta(minutes=9)), NOON + timedelta(minutes=2))
    with store._reading() as connection:
        names = select(func.count()).select_from(schema.meta).where(schema.meta.c.name.startswith("proof "))
        assert connection.scalar(names) == 2


def test_the_incident_of_a_proof_is_found_by_its_nonce(store: Store) -> None:
    assert store.proofs().incident("aaa") is None
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([incident(id="inc-1", rule=PROOF_RULE, labels={"cluster": "default", "proof": "aaa"})])
        ledger.put_incidents([incident(id="inc-2", rule="other", labels={"cluster": "default", "proof": "bbb"})])
    shown = store.proofs().incident("aaa")
    assert shown is not None
    assert shown.id == "inc-1"
    assert store.proofs().incident("bbb") is None
