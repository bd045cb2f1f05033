"""What came of the incidents of each rule."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from engine.cli.main import main
from engine.model.acts import Act, ActKind, RuleStats
from engine.model.incidents import DAWN
from engine.model.notifications import Delivery, DeliveryState, Reason, Settlement
from engine.store import Store
from engine.store.schema import incidents
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, incident


def filled(url: str) -> Store:
    """Return a store in which the rule `wolf` was called not useful once, and `true` lasted 1, 2 and 9 minutes."""
    store = Store.open(url)
    ends = {f"inc-{minutes}": AT + timedelta(minutes=minutes) for minutes in (1, 2)}
    over = [incident(id=id_, rule="true", status="resolved", last_seen=AT, resolved_at=end) for id_, end in ends.items()]
    by_hand = incident(id="inc-9", rule="true", last_seen=AT)
    wolf = [incident(id=id_, rule="wolf") for id_ in ("inc-a", "inc-b")]
    hidden = [incident(id="inc-m", rule="wolf", status="merged"), incident(id="inc-p", rule="wolf", pending=True)]
    undated = incident(id="inc-u", rule="odd", status="resolved", first_seen=None, last_seen=None)
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([*over, by_hand, *wolf, *hidden, undated])
    for id_, state in (
        ("inc-a", DeliveryState.DELIVERED),
        ("inc-b", DeliveryState.REJECTED),
        ("inc-9", DeliveryState.DELIVERED),
    ):
        store.outbox().settle([Settlement(Delivery("ops", id_, 1, Reason.OPENED, AT, AT, state), AT)] * 2)
    acts = [
        ("inc-a", ActKind.ACKNOWLEDGE, ""),
        ("inc-a", ActKind.USEFUL, ""),
        ("inc-a", ActKind.NOT_USEFUL, "the same every night"),
        ("inc-9", ActKind.ACKNOWLEDGE, ""),
        ("inc-9", ActKind.RESOLVE, ""),
        ("inc-9", ActKind.USEFUL, ""),
    ]
    for n, (id_, kind, text) in enumerate(acts):
        store.acts().record(Act(str(n), id_, kind, "mina", "page", AT + timedelta(minutes=9), text))
    return store


def test_each_incident_counts_once_for_its_rule(address: str) -> None:
    store = filled(address)
    assert store.rule_stats(DAWN) == [
        RuleStats("wolf", 2, 1, 1, 0, 1, None, ("the same every night",)),
        RuleStats("true", 3, 1, 1, 1, 0, 120.0),
        RuleStats("odd", 1, 0, 0, 0, 0),
    ]
    assert [each.rule for each in store.rule_stats(AT + timedelta(seconds=1))] == ["odd"], "its lines have no time"
    store.close()


def test_a_resolution_that_newer_evidence_ended_and_an_end_that_is_not_known_do_not_count(address: str) -> None:
    store = filled(address)
    end = AT + timedelta(minutes=40)
    again = incident(id="inc-9", rule="true", revision=2, count=2, status="resolved", last_seen=end, resolved_at=end)
    with store.batch(BatchId("query", 1)) as ledger:
        ledger.put_incidents([again])
    assert next(each for each in store.rule_stats(DAWN) if each.rule == "true").resolve_s == 120.0
    with store._begin() as connection:  # as a migration of an old store leaves it
        connection.execute(update(incidents).where(incidents.c.id != "inc-9").values(until=None))
    assert next(each for each in store.rule_stats(DAWN) if each.rule == "true").resolve_s == 2400.0
    store.close()


def test_the_reasons_are_the_last_ones_of_incidents_that_are_not_useful_still(address: str) -> None:
    store = filled(address)
    last = [("inc-b", "third"), ("inc-a", "fourth"), ("inc-b", "fifth")]
    for n, (id_, text) in enumerate(last):
        store.acts().record(Act(f"more {n}", id_, ActKind.NOT_USEFUL, "mina", "page", AT, text))
    assert store.rule_stats(DAWN)[0].reasons == ("third", "fourth", "fifth")
    store.acts().record(Act("useful", "inc-b", ActKind.USEFUL, "mina", "page", AT))
    assert store.rule_stats(DAWN)[0].reasons == ("the same every night", "fourth")
    store.close()


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(f"sqlite:///{tmp_path}/tocsin.db").close()
    (tmp_path / "tocsin.yml").write_text("sources: [{type: files, paths: [a]}]\nstore: sqlite:///tocsin.db\n")
    where = ["-c", str(tmp_path / "tocsin.yml")]
    assert main(["rules", "stats", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["wolf", "2", "1", "1", "0", "1"],
        ["not", "useful:", "the", "same", "every", "night"],
        ["true", "3", "1", "1", "1", "0", "2", "min"],
    ]
    assert main(["rules", "stats", *where, "--format", "json", "--since", "1d"]) == 0
    assert '"rule": "odd"' in capsys.readouterr().out
    assert main(["rules", "stats", *where, "--since", "soon"]) == 2
