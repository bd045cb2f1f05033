"""Rules on which stages really fail: none is taken by the loader, but a plan is data, and a defect would look like this."""

from __future__ import annotations

from msgspec.structs import replace

from engine.model.rules import Explains, Plan, Test
from tests.building import contains, signature

HEAD = "[2022-10-05 17:{minute:02}:01,000] ERROR"
IN_MATCH, IN_CORRELATE, IN_GROUP = "POISON-MATCH", "POISON-CORRELATE", "POISON-GROUP"
EVER_S = 1e12  # longer than there are years: added to a time it overflows


def poisoned(plan: Plan) -> Plan:
    """Return `plan` with rules that fail in match, in correlate and in group, each on lines that bear its word."""
    unheard_of = Test("text", "unheard-of", IN_MATCH)
    explains = (Explains(rules=("poison-group-symptom",), by={}, before_s=EVER_S, after_s=0.0),)
    rules = (
        signature("poison-match", contains(IN_MATCH), unheard_of),
        signature("poison-correlate", contains(IN_CORRELATE), entity=("cluster", "source"), for_s=EVER_S),
        signature("poison-group", contains(IN_GROUP), explains=explains),
        signature("poison-group-symptom", contains(f"{IN_GROUP}-SYMPTOM")),
    )
    return replace(plan, signatures=(*plan.signatures, *rules))
