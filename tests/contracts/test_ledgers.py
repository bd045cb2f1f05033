"""One suite for every Ledger: the dictionary in `replay()` and the SQL store answer the same."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.incident import MemoryLedger
from engine.model.incidents import (
    DAWN,
    EVER,
    Alert,
    AlertInterval,
    AlertKey,
    Capture,
    Evidence,
    Incident,
    NotEvaluated,
    Roster,
    Verdict,
    interval_of,
)
from engine.model.matches import Value
from engine.model.pictures import StatedFact
from engine.ports import Ledger
from engine.store import Store
from engine.store.ledger import StoreLedger
from engine.store.store import BatchId
from tests.conftest import DATABASES

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
KEY: AlertKey = ("prod", "broker-silent", (("broker", "1"), ("cluster", "prod")))


def alert(minute: int, key: AlertKey = KEY, status: str = "firing") -> Alert:
    at = NOON + timedelta(minutes=minute)
    captures = {"size": Capture((1, 2.5), 1, 2.5, 1, 2.5, 3.5), "topic": Capture(("a.b", "c"))}
    return Alert(key, status, "high", at, at, None, 1, True, {"broker": "1"}, captures, (f"e{minute}",), (f"e{minute}",), "why")


def incident(number: int, **changes: object) -> Incident:
    made = Incident(
        id=f"inc-{number}",
        key=KEY,
        revision=1,
        rule="broker-silent",
        title="Broker 1 is silent",
        severity="high",
        status="open",
        component="broker",
        labels={"broker": "1"},
        first_seen=NOON,
        last_seen=NOON,
        resolved_at=None,
        count=1,
        cause="",
        impact="",
        captures={"size": 3, "topic": "a.b", "ratio": 0.5},
        alerts=(KEY,),
    )
    return replace(made, **changes)


@pytest.fixture(params=["memory", *DATABASES])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    server_store = request.param == "postgresql"
    store = Store.open(
        request.getfixturevalue("postgresql").empty_store() if server_store else f"sqlite:///{tmp_path}/tocsin.db"
    )
    with store.batch(BatchId("query", 0)) as opened:
        assert opened is not None
        yield opened
    store.close()


def put(ledger: Ledger, *verdicts: Verdict, blinds: tuple[NotEvaluated, ...] = ()) -> None:
    ledger.put_findings(verdicts, (), (), blinds)


def test_an_empty_ledger_knows_nothing(ledger: Ledger) -> None:
    assert dict(ledger.alerts("prod")) == {}
    assert list(ledger.incidents("prod")) == []
    assert dict(ledger.evidence(["e1"])) == {}
    assert ledger.roster("prod") == Roster("prod", {})


def test_alerts_come_back_as_they_were_by_scope_and_key(ledger: Ledger) -> None:
    other: AlertKey = ("test", "broker-silent", ())
    put(ledger, Verdict(KEY, (alert(0), alert(5))), Verdict(other, (alert(1, other),)))
    assert dict(ledger.alerts("prod")) == {KEY: (alert(0), alert(5))}
    assert dict(ledger.alerts("test")) == {other: (alert(1, other),)}


def test_a_later_verdict_replaces_the_earlier(ledger: Ledger) -> None:
    put(ledger, Verdict(KEY, (alert(0), alert(5))))
    put(ledger, Verdict(KEY, (alert(5, status="resolved"),)))
    assert ledger.alerts("prod")[KEY] == (alert(5, status="resolved"),)


def test_final_alerts_stay_when_a_verdict_no_longer_repeats_them(ledger: Ledger) -> None:
    put(ledger, Verdict(KEY, (alert(0), alert(5), alert(9))))
    put(ledger, Verdict(KEY, (alert(5, status="resolved"), alert(10)), final_before=NOON + timedelta(minutes=6)))
    assert ledger.alerts("prod")[KEY] == (alert(0), alert(5, status="resolved"), alert(10))


def test_evidence_is_found_by_its_event(ledger: Ledger) -> None:
    some = [Evidence(f"e{n}", "a.log", n, NOON, f"line {n}") for n in range(1200)]
    ledger.put_findings((), some, (), ())
    assert ledger.evidence([]) == {}
    assert dict(ledger.evidence([e.event_id for e in some] + ["unknown"])) == {e.event_id: e for e in some}


def test_a_later_roster_replaces_the_earlier(ledger: Ledger) -> None:
    ledger.put_findings((), (), [Roster("prod", {"broker": ("1",)})], ())
    ledger.put_findings((), (), [Roster("prod", {"broker": ("1", "2"), "worker": ("w",)})], ())
    assert ledger.roster("prod") == Roster("prod", {"broker": ("1", "2"), "worker": ("w",)})


def test_what_cannot_be_judged_adds_up_until_it_is_taken_back(ledger: MemoryLedger | StoreLedger) -> None:
    one, two, other = (
        NotEvaluated("prod", "a.log", "why"),
        NotEvaluated("prod", "b.log", "why"),
        NotEvaluated("test", "a.log", "why"),
    )
    put(ledger, blinds=(one, other))
    put(ledger, blinds=(two, two))
    assert list(ledger.blinds("prod")) == [one, two]
    put(ledger, blinds=(one, NotEvaluated("prod", "", ""), two))
    assert list(ledger.blinds("prod")) == [two]
    put(ledger, blinds=(NotEvaluated("prod", "", ""),))
    assert list(ledger.blinds("prod")) == []
    assert list(ledger.blinds("test")) == [other]


def test_the_last_revision_of_an_incident_counts_and_the_order_of_opening_stays(ledger: Ledger) -> None:
    ledger.put_incidents([incident(2), incident(1)])
    ledger.put_incidents([incident(2, revision=2, status="merged", merged_into="inc-1")])
    assert list(ledger.incidents("prod")) == [incident(2, revision=2, status="merged", merged_into="inc-1"), incident(1)]
    assert list(ledger.incidents("test")) == []


def later(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_only_the_alerts_that_were_seen_are_returned_when_one_asks_for_them(ledger: Ledger) -> None:
    other: AlertKey = ("prod", "another-rule", ())
    put(ledger, Verdict(KEY, (alert(0), alert(5), alert(9))), Verdict(other, (alert(5, other),)))
    assert dict(ledger.alerts("prod", [interval_of(alert(5)), interval_of(alert(7)), interval_of(alert(9))])) == {
        KEY: (alert(5), alert(9))
    }
    assert dict(ledger.alerts("prod", [])) == {}
    assert dict(ledger.alerts("test", [interval_of(alert(5))])) == {}


def test_sights_are_of_what_is_not_over_and_of_what_ended_later_or_at_no_known_time(ledger: Ledger) -> None:
    over, undated = replace(alert(0), ends_at=later(3)), replace(alert(1), dated=False)
    put(ledger, Verdict(KEY, (over, undated, alert(9))))
    every = {AlertInterval(KEY, NOON, later(3)), AlertInterval(KEY, later(1), None), AlertInterval(KEY, later(9), EVER)}
    assert set(ledger.alert_intervals("prod", DAWN)) == set(ledger.alert_intervals("prod", later(3))) == every
    assert set(ledger.alert_intervals("prod", later(4))) == every - {AlertInterval(KEY, NOON, later(3))}
    assert list(ledger.alert_intervals("test", DAWN)) == []


def test_what_changes_is_said_as_it_was_and_as_it_is(ledger: Ledger) -> None:
    def changes(*alerts: Alert, final_before: datetime | None = None) -> set[AlertInterval]:
        return set(ledger.put_findings([Verdict(KEY, alerts, final_before)], (), (), ()))

    ended = replace(alert(5), ends_at=later(6))
    assert changes(alert(0), alert(5)) == {interval_of(alert(0)), interval_of(alert(5))}
    assert changes(alert(0), alert(5)) == set()
    assert changes(ended, final_before=later(1)) == {interval_of(alert(5)), interval_of(ended)}
    assert changes(replace(ended, count=7), final_before=later(9)) == {interval_of(ended)}
    assert changes(alert(9)) == {interval_of(alert(0)), interval_of(ended), interval_of(alert(9))}
    assert changes() == {interval_of(alert(9))}
    assert dict(ledger.alerts("prod")) == {}


def test_incidents_are_found_by_every_key_they_ever_told_of_unless_they_were_over_before(ledger: Ledger) -> None:
    other: AlertKey = ("prod", "another-rule", ())
    ledger.put_incidents([incident(2, alerts=(KEY, other)), incident(1, alerts=(KEY,), last_seen=later(5))])
    ledger.put_incidents([incident(2, revision=2, alerts=(other,), first_seen=None), incident(3)])
    found = {key: [each.id for each in ledger.incidents("prod", {key}, later(5))] for key in (KEY, other)}
    assert found == {KEY: ["inc-2", "inc-1"], other: ["inc-2"]}
    assert [each.id for each in ledger.incidents("prod", {KEY, other}, later(6))] == ["inc-2"]
    assert list(ledger.incidents("prod", set(), DAWN)) == list(ledger.incidents("test", {KEY}, DAWN)) == []


def test_by_which_rules_a_scope_was_decided_is_remembered(ledger: Ledger) -> None:
    assert ledger.judged_by("prod") is None
    ledger.put_judged("prod", "one")
    ledger.put_judged("prod", "two")
    assert (ledger.judged_by("prod"), ledger.judged_by("test")) == ("two", None)


def stated(kind: str, name: str, minute: float, **values: Value) -> StatedFact:
    return StatedFact("prod", kind, name, NOON + timedelta(minutes=minute), values)


def test_without_facts_there_is_no_picture(ledger: Ledger) -> None:
    assert ledger.picture("prod", EVER) is None


def test_a_picture_is_of_a_time_and_only_news_are_told(ledger: Ledger) -> None:
    there = {"host": "kafka-1", "port": 9092, "rack": "null"}
    first, fenced = (stated("broker", "1", minute, **there, state=state) for minute, state in ((0, "unfenced"), (8, "fenced")))
    assert ledger.put_facts([first, stated("broker", "1", 4, **there, state="unfenced")]) == [first]
    assert ledger.put_facts([fenced, stated("broker", "2", 9, **there, state="unfenced")]) == [
        fenced,
        stated("broker", "2", 9, **there, state="unfenced"),
    ]
    assert ledger.picture("prod", NOON - timedelta(minutes=1)) is None
    assert ledger.picture("test", EVER) is None
    pictures = [ledger.picture("prod", NOON + timedelta(minutes=minute)) for minute in (7, 8, 9)]
    assert [{id_: broker.fenced for id_, broker in picture.brokers.items()} for picture in pictures if picture is not None] == [
        {"1": False},
        {"1": True},
        {"1": True, "2": False},
    ]


def test_what_is_told_late_takes_its_place_in_time(ledger: Ledger) -> None:
    new, old = (stated("group", "g", minute, group="g", state=state) for minute, state in ((9, "Empty"), (2, "Stable")))
    assert ledger.put_facts([new]) == [new]
    assert ledger.put_facts([old, new]) == [old]
    earlier, later = (ledger.picture("prod", NOON + timedelta(minutes=minute)) for minute in (5, 20))
    assert earlier is not None
    assert later is not None
    assert (earlier.groups["g"].state, later.groups["g"].state) == ("Stable", "Empty")


def test_of_each_hour_the_last_lag_is_kept_and_the_last_round_is_known(ledger: Ledger) -> None:
    group = stated("group", "g", 0, group="g", state="Stable")
    for minute, behind in ((1, 10), (20, 20), (70, 30)):
        values: dict[str, Value] = {
            "group": "g",
            "topic": "t",
            "partitions": 1,
            "lag": behind,
            "largest_lag": 1,
            "committed": 1,
        }
        ledger.put_facts([group, stated("lag", "g/t", minute, **values), stated("cluster", "x", minute, cluster_id="x")])
    pictures = [ledger.picture("prod", NOON + timedelta(minutes=minute)) for minute in (10, 50, 90)]
    lags = [list(picture.groups["g"].lags.values()) for picture in pictures if picture is not None]
    assert [lag[0].lag if lag else None for lag in lags] == [None, 20, 30]
    last = pictures[-1]
    assert last is not None
    assert (last.cluster_id, last.at) == ("x", NOON + timedelta(minutes=70))


def lag(group: str, topic: str, minute: float) -> StatedFact:
    return stated("lag", f"{group}/{topic}", minute, group=group, topic=topic, partitions=1, lag=5, largest_lag=5, committed=1)


def test_what_is_gone_takes_along_what_was_stated_of_its_parts(ledger: Ledger) -> None:
    group = stated("group", "g", 0, group="g", state="Stable")
    topic = stated("topic", "t", 0, topic="t", partitions=1, copies=1, configs="")
    partition = stated("partition", "t/0", 0, topic="t", partition=0, leader="1", replicas="1", isr="1")
    other = [replace(group, name="g/2", values={**group.values, "group": "g/2"}), lag("g/2", "u", 0)]
    ledger.put_facts([group, topic, partition, lag("g", "t", 0), lag("g", "u", 0), *other])
    gone = stated("group", "g", 3)
    assert ledger.put_facts([gone, lag("g", "t", 2)]) == [gone, stated("lag", "g/t", 3), stated("lag", "g/u", 3)]
    assert ledger.put_facts([replace(gone, at=NOON + timedelta(minutes=4)), lag("g", "t", 2.5)]) == []
    ledger.put_facts([stated("topic", "t", 5)])
    ledger.put_facts([replace(fact, at=NOON + timedelta(minutes=9)) for fact in (group, topic)])
    before, after = (ledger.picture("prod", NOON + timedelta(minutes=minute)) for minute in (1, 10))
    assert before is not None
    assert after is not None
    assert [sorted(before.groups["g"].lags), sorted(before.groups["g/2"].lags)] == [["t", "u"], ["u"]]
    assert [sorted(after.groups["g"].lags), sorted(after.groups["g/2"].lags)] == [[], ["u"]]
    assert [list(picture.topics["t"].partitions) for picture in (before, after)] == [[0], []]


def test_many_facts_are_put_at_once(ledger: Ledger) -> None:
    facts = [
        stated("topic", f"t-{number}", 0, topic=f"t-{number}", partitions=0, copies=1, configs="") for number in range(600)
    ]
    assert len(ledger.put_facts(facts)) == 600
    assert ledger.put_facts(facts) == []
    picture = ledger.picture("prod", EVER)
    assert picture is not None
    assert len(picture.topics) == 600
