"""What other rules make of the same input: each difference once, and what each receiver would have been told."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.comparing import DifferenceKind, differences, messages, reported
from engine.model.incidents import Incident
from engine.model.proofs import PROOF_RULE
from engine.model.routes import Route
from engine.route.matchers import parse_matcher
from tests.unit.cli.incidents import TOO_LARGE

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)


def incident(id: str, rule: str = "rule", at: datetime | None = NOON, entity: str = "a", **fields: Any) -> Incident:
    key = ("default", rule, (("cluster", "default"), ("topic", entity)))
    own = {
        "id": id,
        "rule": rule,
        "key": key,
        "alerts": (key,),
        "evidence": (),
        "title": f"{rule} of {entity}",
        "labels": {"topic": entity},
    }
    return replace(TOO_LARGE, **{**own, "first_seen": at, "opened_at": at, "last_seen": at, "resolved_at": None, **fields})


def kinds(before: list[Incident], after: list[Incident]) -> list[tuple[DifferenceKind, str | None, str | None]]:
    return [
        (d.kind, None if d.before is None else d.before.id, None if d.after is None else d.after.id)
        for d in differences(before, after)
    ]


def test_equal_incidents_do_not_differ_whatever_their_ids() -> None:
    assert kinds([incident("1"), incident("2", entity="b")], [incident("9", entity="b"), incident("1")]) == []


def test_incidents_appear_and_vanish() -> None:
    before, after = [incident("1"), incident("2", "old", NOON + timedelta(hours=1))], [incident("1"), incident("3", "new")]
    assert kinds(before, after) == [(DifferenceKind.APPEARS, None, "3"), (DifferenceKind.VANISHES, "2", None)]


def test_the_same_rule_and_entity_hours_apart_are_two_incidents() -> None:
    assert kinds([incident("1")], [incident("2", at=NOON + timedelta(hours=3))]) == [
        (DifferenceKind.VANISHES, "1", None),
        (DifferenceKind.APPEARS, None, "2"),
    ]


def test_an_incident_with_a_line_of_evidence_in_common_has_another_root() -> None:
    evidence = TOO_LARGE.evidence
    pair = kinds([incident("1", "symptom", evidence=evidence)], [incident("2", "cause", evidence=evidence)])
    assert pair == [(DifferenceKind.ROOT, "1", "2")]
    (difference,) = differences([incident("1", "symptom", evidence=evidence)], [incident("2", "cause", evidence=evidence)])
    assert difference.sentence == "has another root: symptom of a -> cause of a"


def test_a_root_that_became_a_symptom_is_another_root() -> None:
    old = incident("1", "symptom")
    explained = incident("2", "cause", alerts=(incident("2", "cause").key, old.key))
    assert kinds([old], [explained]) == [(DifferenceKind.ROOT, "1", "2")]


def test_severity_comes_before_count() -> None:
    worse = incident("1", severity="low", count=7)
    assert kinds([incident("1")], [worse]) == [(DifferenceKind.SEVERITY, "1", "1")]
    (difference,) = differences([incident("1")], [incident("1", count=7_000)])
    assert difference.sentence == "counts 7,000 instead of 1: rule of a"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 5)), max_size=8), st.randoms())
def test_every_incident_has_one_partner_or_is_one_difference(parts: list[tuple[str, str, int]], random: Any) -> None:
    incidents = [
        incident(f"i{n}", rule, NOON + timedelta(minutes=minute), entity) for n, (rule, entity, minute) in enumerate(parts)
    ]
    other = [replace(each, id=f"o{each.id}") for each in incidents]
    random.shuffle(other)
    assert differences(incidents, other) == ()
    found = differences(incidents, other[1:])
    sides = [side.id for d in found for side in (d.before, d.after) if side is not None]
    assert len(sides) == len(set(sides))
    assert len(found) == min(1, len(other)), "one is left over, whichever it is paired with"


def test_what_went_on_after_the_end_may_count_otherwise() -> None:
    before, after = incident("1"), incident("1", count=9, last_seen=NOON + timedelta(hours=2))
    assert differences([before], [after], NOON + timedelta(hours=1)) == ()
    assert len(differences([before], [after], NOON + timedelta(hours=3))) == 1


def test_a_proof_is_told_to_nobody_by_the_routes() -> None:
    assert reported([incident("1", PROOF_RULE)]) == ()


def test_only_what_people_would_have_been_told_counts_within_the_window() -> None:
    merged, waiting = incident("1", status="merged"), incident("2", pending=True)
    early, late, timeless = incident("3", at=NOON - timedelta(days=1)), incident("4"), incident("5", at=None)
    shown = reported([merged, waiting, late, early, timeless], NOON - timedelta(hours=1), NOON + timedelta(hours=1))
    assert [each.id for each in shown] == ["5", "4"]
    assert [each.id for each in reported([late, early], until=NOON)] == ["3"]


def test_messages_are_counted_by_receiver_day_and_rule() -> None:
    ops = Route("ops", matchers=(parse_matcher('topic="a"'),))
    tree = Route("rest", routes=(ops,))
    incidents = [
        incident("1"),
        incident("2", "other"),
        incident("3", at=NOON + timedelta(days=1)),
        incident("4", at=None),
        incident("5", entity="b"),
    ]
    first, second = messages(incidents, tree)
    assert (first.receiver, first.count, first.by_rule) == ("ops", 4, {"rule": 3, "other": 1})
    assert first.by_day == {date(2026, 10, 5): 2, date(2026, 10, 6): 1}
    assert (second.receiver, second.count, second.muted) == ("rest", 1, 0)
