"""The proofs that were begun: which receiver is told of which (engine/model/proofs.py)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, select

from engine.codec import dumps, loads
from engine.model.incidents import Incident
from engine.model.proofs import PROOF_LABEL, PROOF_RULE, Proof
from engine.store import schema
from engine.store.acts import shown
from engine.store.databases import upsert
from engine.store.outbox import BeginTransaction

_PREFIX = "proof "  # of their rows in meta


class Proofs:
    """The proofs of a store. Every method is one transaction.

    Args:
        reading: begins a transaction that only reads.
        begin: begins a transaction that writes.
    """

    def __init__(self, reading: BeginTransaction, begin: BeginTransaction) -> None:
        self._reading, self._begin = reading, begin

    def begin(self, proof: Proof, now: datetime) -> None:
        """Store a proof, and remove those that are over."""
        row = {"name": f"{_PREFIX}{proof.nonce}", "value": dumps(proof)}
        with self._begin() as connection:
            for other in _proofs(connection):
                if other.until <= now:
                    connection.execute(delete(schema.meta).filter_by(name=f"{_PREFIX}{other.nonce}"))
            connection.execute(upsert(schema.meta, connection.dialect.name), [row])

    def receivers(self, now: datetime) -> Mapping[str, str]:
        """Return the receiver of each proof that goes on and has one, by its nonce."""
        with self._reading() as connection:
            return {proof.nonce: proof.receiver for proof in _proofs(connection) if proof.until > now and proof.receiver}

    def incident(self, nonce: str) -> Incident | None:
        """Return the incident of a proof as it is shown; None before there is one."""
        table, labels = schema.incidents, schema.incident_labels
        ids = select(labels.c.incident).filter_by(name=PROOF_LABEL, value=nonce)
        with self._reading() as connection:
            body = connection.scalar(select(table.c.body).where(table.c.rule == PROOF_RULE, table.c.id.in_(ids)).limit(1))
            return None if body is None else shown(connection, [loads(body, Incident)])[0]


def _proofs(connection: Connection) -> list[Proof]:
    table = schema.meta
    return [loads(body, Proof) for body in connection.scalars(select(table.c.value).where(table.c.name.startswith(_PREFIX)))]
