"""A correlation type names the cells of its state; what is dirty, what has changed and how it is restored is up to the base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from engine.correlate import Correlator
from engine.correlate.aggregate import EventTime
from engine.correlate.entities import ValuesKey, values_key
from engine.correlate.facts import Facts
from engine.correlate.keyed_state import KeyedState, StateCell
from engine.correlate.tables import MomentsTable
from engine.correlate.wiring import correlation_types, wiring_of
from engine.model.incidents import Alert, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Tick
from engine.model.rules import Absence, Clear, Sooner
from tests.building import absence, at_least, broker, correlation, counting, match, plan, rule, seen, signature, tick

PLAN = plan(
    signature("seen", entity=("topic",), clear=Clear(0, 60.0)),
    signature("done", severity="info", entity=("topic",)),
    signature("unreachable", severity="info"),
    counting("event_count", ["seen"], 3, 30.0, entity=("topic",)),
    correlation("value_count", "value_count", ["seen"], 30.0, condition=at_least(2), field="n", entity=("topic",)),
    correlation("temporal_ordered", "temporal_ordered", ["seen", "done"], 30.0, entity=("topic",)),
    correlation("pair", "pair", ["seen"], 20.0, expect=("done",), entity=("topic",)),
    absence("absence", Absence("broker", 60.0, Sooner(("unreachable",), {"broker": "node"}, 30.0))),
    absence("pauses", Absence("seen", 60.0), entity=("topic",)),
    components=(broker(),),
)
RULES = (*sorted(correlation_types()), "pauses")
BATCHES: list[list[Match | ActivitySpan | Tick]] = [
    [tick(0), match("seen", 0, topic="a", n=1), match("seen", 5, topic="b", n=1), match("unreachable", 6, node="3")],
    [match("seen", 10, topic="a", n=2), match("done", 12, topic="a"), seen("other.log", 0, 200), tick(200)],
    [match("seen", 300, topic="a", n=3), match("unreachable", 301, node="3"), seen("other.log", 300, 900), tick(900)],
]


def observed(batches: Sequence[Sequence[Match | ActivitySpan | Tick]], state: dict[str, str] | None = None) -> Correlator:
    correlator = Correlator(PLAN, "default", state)
    for batch in batches:
        for item in batch:
            correlator.observe(item)
        correlator.flush()
    return correlator


@pytest.mark.parametrize("rule_id", RULES)
def test_a_state_restored_from_the_whole_and_its_changes_is_the_state_that_was_stored(rule_id: str) -> None:
    live = wiring_of(PLAN).makers[rule_id]()
    parts: list[str] = []
    clocks = Correlator(PLAN, "default")
    facts = clocks._facts
    for batch in BATCHES:
        for item in batch:
            clocks.observe(item)
            if isinstance(item, Match) and item.rule_id in live.listens:
                live.on_match(item, facts)
        list(live.findings(facts))
        changes = live.encode_changes() if parts else None
        parts = [*parts, changes] if changes is not None else [live.encode()]
        again = wiring_of(PLAN).makers[rule_id]()
        again.restore(*parts)
        assert not again.dirty
        assert not live.dirty
        assert again.encode() == live.encode()


@pytest.mark.parametrize("rule_id", RULES)
def test_a_match_makes_a_state_dirty_and_what_changes_nothing_does_not(rule_id: str) -> None:
    correlator = observed(BATCHES)
    state = correlator._state_of(rule_id)
    state.encode()
    assert list(state.findings(correlator._facts)) == []
    assert not state.dirty
    state.on_match(match(sorted(state.listens)[-1], 950, topic="c", n=4, node="2"), correlator._facts)
    assert state.dirty


class LastSeen(KeyedState):
    """The least that a type is: it alerts on every match, the last one counts."""

    def __init__(self) -> None:
        super().__init__(rule("last-seen", ("topic",)), ("seen",))
        self._times: MomentsTable[ValuesKey] = MomentsTable(list[tuple[ValuesKey, list[EventTime]]])

    def on_match(self, match: Match, facts: Facts) -> None:
        self._times.add(values_key(match, [("topic", "topic")], facts.scope), match.at, match.event_id)

    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        for (_, values), moments in self._times.items():
            key = (facts.scope, self.rule_id, (("topic", values[0] or ""),))
            last, event_id = moments.stamps()[-1]
            yield Verdict(key, (Alert(key, "firing", "high", last, last, None, 1, True, evidence=(event_id,)),))

    def snapshot(self) -> Mapping[str, StateCell]:
        return {"times": self._times}


def test_a_type_is_no_more_than_a_match_verdicts_and_its_cells() -> None:
    facts = Correlator(PLAN, "default")._facts
    state = LastSeen()
    state.on_match(match("seen", 5, topic="a"), facts)
    assert [finding.key[2] for finding in state.findings(facts) if isinstance(finding, Verdict)] == [(("topic", "a"),)]
    assert list(state.findings(facts)) == [], "it was emitted already"
    again = LastSeen()
    again.restore(state.encode())
    assert list(again.findings(facts)) == [], "who continues knows what was emitted"
    state.on_match(match("seen", 9, topic="b"), facts)
    assert [finding.key[2] for finding in state.findings(facts) if isinstance(finding, Verdict)] == [(("topic", "b"),)]
