"""Scopes are apart; progress reaches the scopes of its source, whenever the source is first heard of."""

from msgspec.structs import replace

from engine.correlate import Correlator, StateCache, correlate
from engine.correlate.stream import FLUSH_EVERY
from engine.correlate.wiring import correlation_types
from engine.dsl.schema import CORRELATION_TYPES
from engine.model.incidents import Evidence, Roster, Verdict
from engine.model.rules import Absence, Clear
from tests.building import absence, broker, counting, match, plan, progress, seen, signature, tick
from tests.unit.correlate.saying import alerts, together

PLAN = plan(signature("seen"))


def test_clusters_are_apart() -> None:
    items = [match("seen", 0), match("seen", 1, labels={"cluster": "prod"})]
    said = together(correlate(items, PLAN))
    assert sorted((key[0], dict(key[2])["cluster"], a.count) for key, (a,) in said.items()) == [
        ("default", "default", 1),
        ("prod", "prod", 1),
    ]


def test_clocks_of_clusters_are_apart() -> None:
    short = plan(signature("seen", clear=Clear(0, 60.0)))
    items = [match("seen", 0), match("seen", 0, "p.log", labels={"cluster": "prod"}), seen("p.log", 500, 500, cluster="prod")]
    said = together(correlate(items, short))
    assert {key[0]: a.status for key, (a,) in said.items()} == {"default": "firing", "prod": "resolved"}


def test_progress_before_anything_else_of_its_source_is_not_lost() -> None:
    waiting = plan(signature("seen", clear=Clear(0, 60.0)))
    items = [progress("a.log", closed=True), tick(5), seen("b.log", 500, 500), match("seen", 0)]
    (alert,) = alerts(items, waiting, "seen")
    assert alert.status == "resolved"


def test_progress_of_a_file_reaches_its_containers() -> None:
    waiting = plan(signature("seen", clear=Clear(0, 60.0)))
    first = match("seen", 0, "out.log#kafka-1")
    (alert,) = alerts([progress("out.log", closed=True), first, seen("b.log", 500, 500)], waiting, "seen")
    assert alert.status == "resolved"


def test_who_there_is_is_said_when_that_has_changed() -> None:
    correlator = Correlator(plan(signature("seen"), components=(broker(),)), "default")
    said = []
    for item in (
        match("seen", 0, "1.log", labels={"broker": "1"}),
        match("seen", 1, "1.log", labels={"broker": "1"}),
        seen("2.log", 2, 2, broker="2"),
    ):
        correlator.observe(item)
        said.append([finding for finding in correlator.flush() if isinstance(finding, Roster)])
    assert said == [[Roster("default", {"broker": ("1",)})], [], [Roster("default", {"broker": ("1", "2")})]]


def test_evidence_says_where_its_line_stands() -> None:
    correlator = Correlator(PLAN, "default")
    one = replace(match("seen", 0), number=17)
    correlator.observe(one)
    (proof,) = (finding for finding in correlator.flush() if isinstance(finding, Evidence))
    assert proof == Evidence(one.event_id, "a.log", 17, one.at, one.text)


def test_what_nobody_counts_may_be_taken_back() -> None:
    correlator = Correlator(PLAN, "default")
    correlator.retract(match("unheard", 0))
    assert correlator.flush() == []


def test_findings_come_while_matches_do() -> None:
    endless = (match("seen", float(n)) for n in range(10**9))
    found = next(f for f in correlate(endless, PLAN) if isinstance(f, Verdict))
    assert found.alerts[0].count == FLUSH_EVERY


def test_types_are_found_by_being_there() -> None:
    assert sorted(correlation_types()) == sorted(CORRELATION_TYPES)


def test_only_what_changed_is_stored() -> None:
    writes: list[str] = []

    class Noting(dict[str, str]):
        def __setitem__(self, key: str, value: str) -> None:
            writes.append(key)
            super().__setitem__(key, value)

    state = Noting()
    made = plan(signature("seen"), signature("other"), counting("loop", ["seen"], 9, 60.0))
    correlator = Correlator(made, "default", state)
    correlator.observe(match("seen", 0))
    correlator.flush()
    assert writes == ["loop", "seen", "head"]
    writes.clear()
    correlator.observe(seen("a.log", 5, 5))
    correlator.flush()
    assert writes == ["head"]


def test_what_is_stored_is_read_only_when_it_is_needed() -> None:
    reads: list[str] = []

    class Noting(dict[str, str]):
        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
            reads.append(key)
            return super().get(key, default)  # type: ignore[arg-type]

        def __getitem__(self, key: str) -> str:
            reads.append(key)
            return super().__getitem__(key)

    state = Noting()
    made = plan(signature("seen", clear=Clear(0, 3600.0)), signature("other"))
    first = Correlator(made, "default", state)
    first.observe(match("seen", 0))
    first.observe(match("other", 0))
    first.flush()
    reads.clear()
    second = Correlator(made, "default", state)
    second.observe(match("other", 9))
    second.flush()
    assert reads == ["head", "other"]
    resting = StateCache()
    for second_s in (10, 11):
        reads.clear()
        again = Correlator(made, "default", state, resting)
        again.observe(match("other", second_s))
        again.flush()
    assert reads == ["head"], "what rests in this process is not read"
    third = Correlator(made, "default", state)
    third.observe(seen("a.log", 3630, 3630))
    assert [f.alerts[0].status for f in third.flush() if isinstance(f, Verdict) and f.key[1] == "seen"] == ["resolved"]


def test_an_absence_without_an_expectation_is_refused() -> None:
    wrong = replace(absence("a", Absence("broker")), absence=None)
    try:
        Correlator(plan(wrong, components=(broker(),)), "default")
    except ValueError as error:
        assert str(error) == "a: an absence needs `of`"
    else:
        raise AssertionError("accepted")


def test_days_after_its_end_an_entity_is_forgotten_but_its_alerts_stay() -> None:
    one = plan(signature("seen", entity=("cluster", "topic"), clear=Clear(0, 60.0)))
    state: dict[str, str] = {}
    correlator = Correlator(one, "default", state)
    correlator.observe(tick(0))
    correlator.observe(match("seen", 0, topic="a"))
    correlator.observe(seen("a.log", 500, 500))
    found = correlator.flush()
    assert '"a"' in state["seen"]
    correlator.observe(tick(25 * 3600))
    correlator.observe(match("seen", 90000, topic="b"))  # a rule is swept when it is asked
    found += correlator.flush()
    assert '"a"' not in state["seen"]
    correlator.observe(match("seen", 90001, topic="a"))
    found += correlator.flush()
    said = {dict(key[2])["topic"]: [a.status for a in again] for key, again in together(found).items()}
    assert said == {"a": ["resolved", "firing"], "b": ["firing"]}
