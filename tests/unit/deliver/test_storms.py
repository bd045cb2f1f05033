"""A storm of incidents is one message that grows: against the stand-in for Slack, through 429, lost answers and kill -9."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from connectors import slack
from connectors.memory import MemoryReceiver
from connectors.pagerduty import open_receiver as open_pagerduty
from engine.deliver import Policy
from engine.model.links import LinkTargets
from engine.model.notifications import DeliveryState, Reason, Receipt
from engine.model.routes import Hours, LabelMatcher, Route, Silence, TimeInterval, TimeSpan, Timings
from engine.store import Store
from engine.store.store import BatchId
from tests.standins.pagerduty import ROUTING_KEY, PagerDutyStandIn
from tests.standins.slack import TOKEN, SlackStandIn
from tests.unit.cli.incidents import incident
from tests.unit.deliver.scene import START, Scene

POST, EDIT = "chat.postMessage", "chat.update"
SIZE, MANY = 5, 40
POLICY = Policy(Route("ops", timings=Timings(30.0, 300.0, 4 * 3600.0)), links=LinkTargets("https://t"), storm_size=SIZE)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server() -> Iterator[SlackStandIn]:
    with SlackStandIn() as running:
        yield running


@pytest.fixture
def scene(server: SlackStandIn, store: Store) -> Scene:
    return Scene(store, {"ops": slack.open_receiver("#kafka-ops", TOKEN, server.base_url)}, POLICY)


def put(scene: Scene, numbers: range, **changes: Any) -> None:
    """Let the job store incidents of brokers that differ by their number, in one batch."""
    made = [
        incident(
            **{
                "id": f"inc-{n:02}",
                "revision": 1,
                "severity": "high",
                "rule": "broker-silent",
                "key": ("prod", "broker-silent", (("broker", str(n)),)),
                "labels": {"cluster": "prod", "broker": str(n)},
                "title": f"Broker {n} went silent",
                "symptoms": (),
                **changes,
            }
        )
        for n in numbers
    ]
    with scene.store.batch(BatchId("query", next(scene.batches))) as ledger:
        ledger.put_incidents(made)


def through(scene: Scene, first: int, last: int) -> None:
    for second in range(first, last):
        scene.at(second)


def rows(message: dict[str, Any]) -> list[str]:
    blocks = [block for block in message["blocks"] if block["type"] == "table"]
    return [str(row) for block in blocks for row in block["rows"][1:]]


def test_forty_incidents_in_a_minute_are_one_message_whose_table_grows(scene: Scene, server: SlackStandIn) -> None:
    for second in range(60):
        put(scene, range(MANY * second // 60, MANY * (second + 1) // 60))
        scene.at(second)
    through(scene, 60, 100)
    (parent,) = server.parents()
    assert "40 incidents of broker-silent in cluster prod: 40 still open" in parent["text"]
    assert parent["edits"] >= 1
    assert len(rows(parent)) >= 8
    assert "https://t/incidents/inc-00" in rows(parent)[0] and "broker=0" in rows(parent)[0]
    details = "".join(str(reply["blocks"]) for reply in server.replies(parent))
    assert all(f"(inc-{n:02})" in details for n in range(MANY)), "every incident can be found"
    states = {id_: entry.state for (_, id_), entry in scene.store.outbox().entries().items()}
    assert set(states.values()) == {DeliveryState.DELIVERED}
    assert len(states) == MANY + 1
    assert scene.outcomes("inc-07") == [("digest", "delivered")], "once"
    assert scene.store.outbox().standings("inc-07")[0].log.digest.startswith("storm-")  # type: ignore[union-attr]


def at_once(server: SlackStandIn, store: Store) -> Scene:
    policy = replace(POLICY, tree=Route("ops", timings=Timings(0.0, 300.0, 4 * 3600.0)))
    return Scene(store, {"ops": slack.open_receiver("#kafka-ops", TOKEN, server.base_url)}, policy)


@pytest.mark.parametrize("in_s", [20, 60])
def test_forty_incidents_are_three_messages_at_most_where_none_waits(server: SlackStandIn, store: Store, in_s: int) -> None:
    scene = at_once(server, store)
    for second in range(in_s):
        put(scene, range(MANY * second // in_s, MANY * (second + 1) // in_s))
        scene.at(second)
        assert server.parents() or not scene.store.outbox().entries(), "the first is not delayed"
    through(scene, in_s, 100)
    assert len(server.parents()) <= 3
    *alone, storm = server.parents()
    assert f"{MANY - len(alone)} incidents of broker-silent" in storm["text"]


def test_a_third_incident_waits_ten_seconds_for_a_storm_and_is_told_by_itself_where_none_comes(
    server: SlackStandIn, store: Store
) -> None:
    scene = at_once(server, store)
    for second in range(3):
        put(scene, range(second, second + 1))
        scene.at(second)
    assert len(server.parents()) == 2
    through(scene, 3, 12)
    assert len(server.parents()) == 2
    scene.at(12)
    assert [message["text"].partition(":")[0] for message in server.parents()] == ["HIGH"] * 3


def test_its_rows_follow_and_its_end_is_one_line(scene: Scene, server: SlackStandIn) -> None:
    put(scene, range(12))
    through(scene, 0, 40)
    put(scene, range(4), revision=2, status="resolved", why="seen to start again")
    through(scene, 40, 70)
    (parent,) = server.parents()
    assert "12 incidents of broker-silent in cluster prod: 8 still open" in parent["text"]
    assert ["✅ resolved" in row for row in rows(parent)] == [False] * 8 + [True] * (len(rows(parent)) - 8)
    put(scene, range(12), revision=3, status="resolved", why="seen to start again")
    through(scene, 70, 400)
    assert len(server.parents()) == 1
    assert parent["text"].startswith("Resolved: 12 incidents")
    assert len(parent["blocks"]) == 1
    assert "all 12 incidents are over" in str(server.replies(parent)[-1]["blocks"])
    posts = len(server.calls)
    scene.restart()
    through(scene, 400, 420)
    assert len(server.calls) == posts, "nothing is told after its end"


def test_what_gets_worse_in_it_is_told_by_itself_and_stays_in_the_table(scene: Scene, server: SlackStandIn) -> None:
    put(scene, range(12))
    through(scene, 0, 40)
    put(scene, range(3, 4), revision=2, severity="critical")
    through(scene, 40, 60)
    storm, own = server.parents()
    assert own["text"].startswith("CRITICAL: Broker 3 went silent")
    assert "🔴 critical" in rows(storm)[0]
    assert not any(reply["reply_broadcast"] for reply in server.replies(storm)), "it is told once"
    put(scene, range(12, 13), severity="critical")
    through(scene, 60, 100)
    assert len(server.parents()) == 2
    assert server.replies(storm)[-1]["reply_broadcast"] is True, "what joins the storm makes it worse"
    put(scene, range(3, 4), revision=3, severity="critical", status="resolved")
    through(scene, 100, 440)
    assert own["text"].startswith("Resolved: Broker 3 went silent")
    assert "13 incidents of broker-silent in cluster prod: 12 still open" in storm["text"]


def test_others_are_told_as_ever(scene: Scene, server: SlackStandIn) -> None:
    put(scene, range(SIZE))
    put(scene, range(50, 52), rule="disk-full", key=("other", "disk-full", ()), labels={"cluster": "other"})
    through(scene, 0, 60)
    assert len(server.parents()) == SIZE + 2


def test_after_a_quiet_while_another_storm_is_another_message(scene: Scene, server: SlackStandIn) -> None:
    put(scene, range(8))
    through(scene, 0, 40)
    put(scene, range(8, 9))
    scene.at(200)
    scene.at(260)
    assert len(server.parents()) == 1, "it joined"
    put(scene, range(20, 21))
    scene.at(900)
    scene.at(940)
    assert len(server.parents()) == 2, "one that comes later has its own message"


def test_it_is_repeated_while_it_is_open(scene: Scene, server: SlackStandIn) -> None:
    put(scene, range(12))
    through(scene, 0, 40)
    scene.at(4 * 3600 + 60)
    (parent,) = server.parents()
    assert server.replies(parent)[-1]["reply_broadcast"] is True
    assert "still open: 12 incidents of broker-silent" in str(server.replies(parent)[-1]["blocks"])


NIGHT = TimeInterval("night", (TimeSpan(times=((180, 420),)),))  # from 03:00 to 07:00 UTC


def silence_all(scene: Scene, seconds: int) -> None:
    matchers = (LabelMatcher("rule", "=", "broker-silent"),)
    scene.store.outbox().put_silence(Silence("s", matchers, scene.now, START + timedelta(seconds=seconds)))


def quieted(scene: Scene, how: str) -> int:
    """Mute all incidents of the storm; return the second at which that ends."""
    if how == "silence":
        silence_all(scene, 9 * 3600)
        return 9 * 3600
    return (7 * 60 - (2 * 60 + 10)) * 60


@pytest.mark.parametrize("how", ["silence", "hours"])
def test_while_all_of_it_is_muted_it_only_says_what_is_over(store: Store, how: str) -> None:
    mail = MemoryReceiver(rate_limit_key="mail", gathers=True)
    tree = POLICY.tree if how == "silence" else replace(POLICY.tree, hours=Hours(mute=(NIGHT,)))
    scene = Scene(store, {"ops": mail}, replace(POLICY, tree=tree))
    put(scene, range(12))
    through(scene, 0, 40)
    end = quieted(scene, how)
    put(scene, range(3), revision=2, severity="critical")
    for second in range(3600, end, 600):
        scene.at(second)
    assert len(mail.notifications) == 1, "nothing is told, neither what is worse nor that it is still open"
    scene.at(end)
    scene.at(end + 60)
    assert len(mail.notifications) > 1, "it is told when it is not muted any more"
    if how == "silence":
        silence_all(scene, 20 * 3600)
        put(scene, range(12), revision=3, status="resolved")
        scene.at(end + 3600)
        assert mail.notifications[-1].reason is Reason.RESOLVED


@pytest.mark.parametrize("behaviours", [["ratelimited:20"], ["drop"], ["status:503"], ["bare"], ["invalid_blocks"]])
def test_whatever_slack_answers_it_is_one_message_with_all_of_it(
    scene: Scene, server: SlackStandIn, behaviours: list[str]
) -> None:
    put(scene, range(20))
    server.script(POST, *behaviours)
    server.script(EDIT, *[word for word in behaviours if word != "bare"])
    through(scene, 0, 40)
    put(scene, range(20, MANY))
    through(scene, 40, 200)
    (parent,) = server.parents()
    assert "40 incidents" in parent["text"]
    assert {entry.state for entry in scene.store.outbox().entries().values()} == {DeliveryState.DELIVERED}


def test_a_restart_between_any_two_steps_loses_and_doubles_nothing(scene: Scene, server: SlackStandIn) -> None:
    for second in range(120):
        if second % 3 == 0 and second < 3 * MANY:
            put(scene, range(second // 3, second // 3 + 1))
        scene.at(second)
        scene.restart()
    through(scene, 120, 160)
    assert len(server.parents()) <= 1 + SIZE
    storms = [parent for parent in server.parents() if "incidents of" in parent["text"]]
    assert len(storms) == 1
    alone = len(server.parents()) - 1
    assert f"{MANY - alone} incidents" in storms[0]["text"]


def test_one_that_cannot_be_edited_gets_what_joined_and_the_end(store: Store) -> None:
    mail = MemoryReceiver(rate_limit_key="mail", gathers=True)
    scene = Scene(store, {"ops": mail}, POLICY)
    put(scene, range(12))
    through(scene, 0, 40)
    put(scene, range(12, 20))
    through(scene, 40, 120)
    put(scene, range(10), revision=2, status="resolved")
    through(scene, 120, 200)
    put(scene, range(20), revision=3, status="resolved")
    through(scene, 200, 700)
    assert [(each.reason, each.incident.count, each.news) for each in mail.notifications] == [
        (Reason.DIGEST, 12, ""),
        (Reason.DIGEST, 20, "8 more: 20 incidents"),
        (Reason.RESOLVED, 20, "all 20 incidents are over"),
    ]
    assert [len(each.members) for each in mail.notifications] == [12, 20, 20]


def test_a_receiver_that_refuses_a_storm_hands_its_incidents_to_the_fallback(store: Store) -> None:
    ops = MemoryReceiver(rate_limit_key="a", gathers=True, answers=[Receipt(DeliveryState.REJECTED, "token revoked")])
    spare = MemoryReceiver(rate_limit_key="b", gathers=True)
    scene = Scene(store, {"ops": ops, "spare": spare}, replace(POLICY, fallbacks={"ops": "spare"}))
    put(scene, range(12))
    through(scene, 0, 40)
    assert [(each.reason, each.incident.count) for each in spare.notifications] == [(Reason.DIGEST, 12)]


def test_one_page_for_a_storm_which_ends_with_it(store: Store) -> None:
    with PagerDutyStandIn() as pager:
        scene = Scene(store, {"ops": open_pagerduty(ROUTING_KEY, pager.address)}, POLICY)
        put(scene, range(12))
        through(scene, 0, 40)
        assert list(pager.alerts.values()) == ["triggered"]
        put(scene, range(12), revision=2, status="resolved")
        through(scene, 40, 400)
        assert pager.alerts == {}


def test_programs_get_every_incident(store: Store) -> None:
    program = MemoryReceiver(rate_limit_key="webhook")
    scene = Scene(store, {"ops": program}, POLICY)
    put(scene, range(12))
    through(scene, 0, 60)
    assert [each.reason for each in program.notifications] == [Reason.OPENED] * 12


@pytest.mark.parametrize("size", [0, SIZE])
def test_nothing_is_remembered_of_what_is_never_gathered(store: Store, size: int) -> None:
    scene = Scene(store, {"ops": MemoryReceiver(gathers=not size)}, replace(POLICY, storm_size=size))
    put(scene, range(3), severity="low")
    scene.at(0)
    through(scene, 29, 32)
    assert [scene.entry(id=f"inc-{n:02}").state for n in range(3)] == [DeliveryState.DELIVERED] * 3
    dispatch = scene.notifier._dispatch
    assert not any(dispatch._opened.values()) and not any(dispatch._singles.values())


@pytest.mark.slow
def test_kill_9_while_it_is_sent_and_while_it_is_edited(store: Store, server: SlackStandIn, tmp_path: Path) -> None:
    scene = Scene(store, {})  # the job; the notifier is another process
    url = f"sqlite:///{tmp_path}/tocsin.db"
    server.script(POST, "hold")
    put(scene, range(20))
    with notifying(url, server) as process:
        wait_until(lambda: len(server.parents()) == 1, process)
    server.script(EDIT, "hold")
    put(scene, range(20, MANY))
    with notifying(url, server) as process:
        wait_until(lambda: server.count(EDIT) == 1, process)
    with notifying(url, server) as process:
        wait_until(lambda: _is_settled(store), process)
    (parent,) = server.parents()
    assert "40 incidents" in parent["text"]
    members = [id_ for storm in _storms(store) for id_ in storm]
    assert sorted(members) == [f"inc-{n:02}" for n in range(MANY)]


@contextmanager
def notifying(url: str, server: SlackStandIn) -> Iterator[subprocess.Popen[bytes]]:
    """Run a notifier in a process of its own, and kill it with the block."""
    process = subprocess.Popen([sys.executable, "-m", "tests.unit.deliver.slack_process", url, server.base_url], cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes], within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert process.poll() is None, "the notifier ended"
        assert time.monotonic() < end, "the notifier comes to no end"
        time.sleep(0.02)


def _is_settled(store: Store) -> bool:
    entries = store.outbox().entries().values()
    return len(entries) == MANY + 1 and {entry.state for entry in entries} == {DeliveryState.DELIVERED}


def _storms(store: Store) -> list[list[str]]:
    logs = store.outbox().notification_logs()
    storms = {log.storm for log in logs.values() if log.storm}
    return [[id_ for (_, id_), log in logs.items() if log.storm == storm] for storm in storms]
