"""Proofs: marked lines that `tocsin prove` puts into a source, to see whether they come through.

Whoever can write into a log can write such a line. So an incident of PROOF_RULE is routed by no route, but only to the receiver
that the store has for its nonce, and for a short time.
"""

from __future__ import annotations

import json
from datetime import datetime

from msgspec import Struct

PROOF_RULE = "tocsin-proof"
PROOF_LABEL = "proof"  # the label of its incidents that holds the nonce


class Proof(Struct, frozen=True):
    """A proof that was begun. `nonce`: letters that nobody can guess; `receiver` is told of its incident until `until`, ""
    for nobody."""

    nonce: str
    receiver: str
    until: datetime

    def line(self, at: datetime) -> str:
        """Return the marked line, a JSON document: its time has a zone whatever the source assumes, and every carrier takes
        it."""
        message = f"tocsin prove {self.nonce} has put this line here; it means no trouble"
        fields = {"@timestamp": at.isoformat(timespec="milliseconds"), "level": "INFO", "logger": "tocsin.proof"}
        return json.dumps({**fields, "message": message})
