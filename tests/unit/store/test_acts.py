"""Acts in the store: each once, whoever sends it how often, and what the list shows is what the pure functions say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.acting import as_shown, handling_of, noted
from engine.errors import UnknownIncident
from engine.model.acts import Act, ActKind, ActOutcome, SilenceScope
from engine.model.incidents import STATES, AlertCourse, Incident
from engine.model.searches import Search
from engine.store import Store
from engine.store.acts import _insert
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, incident

THEN = AT + timedelta(minutes=20)
OPEN = incident(id="inc-1", revision=1)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = Store.open(address)
    put(opened, OPEN)
    yield opened
    opened.close()


def put(store: Store, *incidents: Incident) -> None:
    with store.batch(BatchId("query", store.batches())) as ledger:
        ledger.put_incidents(incidents)


def act(kind: ActKind, key: str = "k", **changes: Any) -> Act:
    return replace(Act(key, "inc-1", kind, "mina", "slack", THEN), **changes)


def test_an_act_that_arrives_again_is_one_act(store: Store) -> None:
    first = store.acts().record(act(ActKind.ACKNOWLEDGE, text="on it"))
    again = store.acts().record(act(ActKind.ACKNOWLEDGE, text="on it", at=THEN + timedelta(seconds=3)))
    assert (first.decision.outcome, first.is_repeated) == (ActOutcome.DONE, False)
    assert (again.decision, again.is_repeated, again.act) == (first.decision, True, first.act)
    assert [each.at for each in store.acts().of("inc-1")] == [THEN]
    assert (again.incident.status, again.incident.owner) == ("acknowledged", "mina")


def test_two_people_at_once_have_one_effect_with_the_name_of_the_first(store: Store) -> None:
    results: dict[str, Any] = {}

    def press(who: str) -> None:
        results[who] = store.acts().record(act(ActKind.RESOLVE, f"key of {who}", by=who))

    threads = [threading.Thread(target=press, args=(who,)) for who in ("mina", "jun")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (done,) = store.acts().of("inc-1")
    assert sorted(each.decision.outcome.value for each in results.values()) == ["done", "unchanged"]
    assert all(each.incident.why == f"by {done.by}" for each in results.values())


def test_an_act_without_effect_leaves_nothing(store: Store) -> None:
    refused = store.acts().record(act(ActKind.NOTE))
    assert refused.decision.outcome is ActOutcome.REFUSED
    assert store.acts().of("inc-1") == []
    assert store.acts().changed_since(0) == (0, ())
    with pytest.raises(UnknownIncident, match="no incident `inc-9`"):
        store.acts().record(act(ActKind.NOTE, incident="inc-9", text="x"))


def test_what_the_job_stores_later_never_touches_what_people_did(store: Store) -> None:
    store.acts().record(act(ActKind.ACKNOWLEDGE))
    put(store, replace(OPEN, revision=2, count=7))
    (shown,) = store.incidents()
    assert (shown.revision, shown.count, shown.status, shown.owner) == (2, 7, "acknowledged", "mina")
    assert [each.status for each in store.revisions("inc-1")] == ["open", "open"]
    with store.reading() as ledger:
        assert [each.status for each in ledger.incidents("default")] == ["open"], "the job goes on with its own"
    assert [each.status for each in store.changed_since(0)[1]] == ["acknowledged"]
    assert store.incident_counts() == {("acknowledged", "critical"): 1}, "metrics count what people see"


def test_acts_on_a_merged_incident_are_acts_on_the_one_it_is_part_of(store: Store) -> None:
    put(store, incident(id="inc-0"), replace(OPEN, revision=2, status="merged", merged_into="inc-0"))
    recorded = store.acts().record(act(ActKind.ACKNOWLEDGE))
    assert (recorded.incident.id, recorded.incident.status) == ("inc-0", "acknowledged")
    assert [each.kind for each in store.acts().of("inc-0")] == [ActKind.ACKNOWLEDGE]


def test_changes_by_people_are_found_by_a_mark(store: Store) -> None:
    store.acts().record(act(ActKind.ACKNOWLEDGE))
    mark, incidents = store.acts().changed_since(0)
    assert [(each.id, each.status) for each in incidents] == [("inc-1", "acknowledged")]
    assert store.acts().changed_since(mark) == (mark, ())
    store.acts().record(act(ActKind.NOTE, "another", text="the disk is full"))
    later, incidents = store.acts().changed_since(mark)
    assert later > mark and [each.edition for each in incidents] == ["1a2"]


def test_a_silence_is_added_with_the_act_once(store: Store) -> None:
    until = THEN + timedelta(hours=2)
    for _ in range(2):
        store.acts().record(act(ActKind.SILENCE, scope=SilenceScope.RULE, until=until, text="known"))
    (silence,) = store.outbox().silences(THEN)
    (done,) = store.acts().of("inc-1")
    assert (silence.id, silence.by, silence.comment, silence.ends_at) == (done.silence, "mina", "known", until)
    assert [str(each) for each in silence.matchers] == [f'rule="{OPEN.rule}"', 'cluster="default"']


def test_acts_go_with_the_incident_when_it_is_removed_for_its_age(store: Store) -> None:
    put(store, replace(OPEN, revision=2, status="resolved"), incident(id="inc-2", key=("default", "other", ()), alerts=()))
    store.acts().record(act(ActKind.NOTE, text="it was the disk"))
    store.acts().record(act(ActKind.NOTE, "later", text="and here, too", incident="inc-2"))
    assert store.prune(datetime.now(AT.tzinfo) + timedelta(days=1)) == 1
    assert store.acts().of("inc-1") == []


def test_an_act_is_after_the_mark_though_earlier_ones_were_removed_for_their_age(store: Store) -> None:
    put(store, replace(OPEN, revision=2, status="resolved"), incident(id="inc-2", key=("default", "other", ()), alerts=()))
    store.acts().record(act(ActKind.NOTE, text="it was the disk"))
    mark, _ = store.acts().changed_since(0)
    assert store.prune(datetime.now(AT.tzinfo) + timedelta(days=1)) == 1
    store.acts().record(act(ActKind.ACKNOWLEDGE, "later", incident="inc-2"))
    assert [each.id for each in store.acts().changed_since(mark)[1]] == ["inc-2"]


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(store: Store) -> None:
    put(store, incident(id="inc-abc1"), incident(id="inc-abd2"))
    ids = store.acts().id_of
    assert (ids("inc-abc"), ids("abc"), ids("inc-1"), ids("inc-abd2")) == ("inc-abc1", "inc-abc1", "inc-1", "inc-abd2")
    with pytest.raises(UnknownIncident, match="`ab` is not the beginning of one id alone: inc-abc1, inc-abd2"):
        ids("ab")
    for nothing in ("x", "", "inc-%", "_nc"):
        with pytest.raises(UnknownIncident, match="there is no incident"):
            ids(nothing)


TIMES = st.none() | st.integers(-300, 3600).map(lambda seconds: AT + timedelta(seconds=seconds))
KINDS = st.sampled_from([ActKind.ACKNOWLEDGE, ActKind.RESOLVE, ActKind.REOPEN, ActKind.NOTE, ActKind.ASSIGN])


@st.composite
def incidents(draw: Any, id: str) -> Incident:
    seen, begins = draw(TIMES), draw(st.lists(TIMES.filter(bool), max_size=3))
    course = tuple(AlertCourse("root", "r", "", "low", at, at, None, 1, {}) for at in begins)
    status = draw(st.sampled_from(["open", "resolved", "merged", "retracted"]))
    drawn = {"count": draw(st.integers(1, 3)), "pending": draw(st.booleans()), "course": course, "status": status}
    return incident(id=id, first_seen=seen, last_seen=seen, **drawn)


@settings(deadline=None)
@given(st.data())
def test_the_state_in_sql_is_that_of_the_pure_function(data: st.DataObject) -> None:
    then, now = data.draw(incidents("inc-1")), data.draw(incidents("inc-1"))
    kinds = data.draw(st.lists(KINDS, min_size=1, max_size=3))
    at = AT + timedelta(seconds=data.draw(st.integers(-600, 3600)))
    acts = [noted(act(kind, str(n), at=at, text="x"), then) for n, kind in enumerate(kinds)]
    expected = as_shown(now, handling_of(acts))
    store = Store.open("sqlite://")
    put(store, replace(then, pending=False, status="open"))
    with store._begin() as connection:
        for each in acts:
            _insert(connection, each)
    put(store, now)
    state = "pending" if expected.pending else expected.status
    found, counts = store.search(Search(states=(state,)), 10)
    assert found == [expected]
    assert counts == dict.fromkeys(STATES, 0) | {state: 1}
    store.close()
