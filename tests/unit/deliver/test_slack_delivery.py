"""One message for an incident in a Slack channel, whatever happens between sending it and knowing so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from connectors import slack
from engine.model.incidents import RenderedStep
from engine.model.notifications import DeliveryState, Settlement
from engine.store import Store
from tests.standins.slack import TOKEN, SlackStandIn
from tests.unit.deliver.scene import START, Scene

POST = "chat.postMessage"


@pytest.fixture
def server() -> Iterator[SlackStandIn]:
    with SlackStandIn() as running:
        yield running


@pytest.fixture
def scene(server: SlackStandIn, store: Store) -> Scene:
    return Scene(store, {"ops": slack.open_receiver("#kafka-ops", TOKEN, server.base_url)})


def texts(message: dict[str, object]) -> str:
    return str(message["blocks"])


def test_one_message_is_posted_and_then_kept_true_by_edits(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    (parent,) = server.parents()
    assert parent["edits"] == 0
    assert "CRITICAL" in texts(parent)
    (rest,) = server.replies(parent)
    assert "The task is dead until someone restarts it" in texts(rest)
    scene.put(revision=2, count=40)
    scene.at(31)
    scene.at(331)
    assert parent["edits"] == 1
    assert "40 times" in texts(parent)
    assert len(server.replies(parent)) == 1, "grown counts are no news"
    scene.put(revision=3, count=40, status="resolved", why="seen to recover")
    scene.at(340)
    scene.at(640)
    assert len(server.parents()) == 1
    assert "Resolved" in texts(parent)
    assert len(parent["blocks"]) == 1
    assert "resolved (seen to recover)" in texts(server.replies(parent)[-1])


def test_what_is_worse_is_said_aloud(scene: Scene, server: SlackStandIn) -> None:
    scene.put(severity="high")
    scene.at(0)
    scene.at(30)
    scene.put(severity="critical", revision=2)
    scene.at(33)
    (parent,) = server.parents()
    assert [r["reply_broadcast"] for r in server.replies(parent)] == [False, True]


def test_a_message_of_unknown_outcome_is_looked_for_before_it_is_sent_again(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "drop")
    scene.put()
    scene.at(0)
    assert scene.at(30) == 0
    assert scene.entry().unsure_since is not None
    assert scene.at(36) == 1
    (parent,) = server.parents()
    assert len(server.replies(parent)) == 1
    assert scene.store.outbox().notification_logs()["ops", "inc-1"].marks["ts"] == parent["ts"]


def test_a_process_that_dies_between_sending_and_marking_leaves_one_message(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    outbox = scene.store.outbox()
    died = replace(scene.entry(), state=DeliveryState.SENDING, marks={}, attempt_at=START + timedelta(seconds=30))
    outbox.settle([Settlement(died, scene.now)])
    forget(scene)
    scene.restart()
    assert scene.at(40) == 1
    (parent,) = server.parents()
    assert parent["edits"] == 1
    assert len(server.replies(parent)) == 1, "the evidence is not said twice either"


def test_an_answer_in_the_thread_that_got_lost_is_not_said_twice(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "accept", "drop")
    scene.put()
    scene.at(0)
    assert [scene.at(30), scene.at(36)] == [0, 1]
    (parent,) = server.parents()
    assert len(server.replies(parent)) == 1


def test_a_rate_limit_between_message_and_thread_resumes_there(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "accept", "ratelimited:9")
    scene.put()
    scene.at(0)
    assert [scene.at(30), scene.at(38.9), scene.at(39)] == [0, 0, 1]
    (parent,) = server.parents()
    assert len(server.replies(parent)) == 1


def test_a_deleted_message_is_posted_anew(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    server.messages.clear()
    scene.put(revision=2, severity="low")
    scene.at(31)
    assert scene.at(331) == 1
    assert len(server.parents()) == 1


def test_a_deleted_message_comes_back_with_its_details(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    ids = {message["client_msg_id"] for message in server.messages}
    server.messages.clear()
    scene.put(revision=2, severity="low")
    scene.at(31)
    scene.at(331)
    (parent,) = server.parents()
    assert [reply["text"] for reply in server.replies(parent)] == ["Details", "severity is low now, was critical"]
    assert ids.isdisjoint(message["client_msg_id"] for message in server.messages), "Slack would take it for the deleted one"


def test_details_are_kept_true_by_edits_too(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    (parent,) = server.parents()
    (rest,) = server.replies(parent)
    scene.put(revision=2, next_checks=("Is the disk full?",))
    scene.at(31)
    scene.at(331)
    assert server.replies(parent) == [rest]
    assert rest["edits"] == 1
    assert "Is the disk full?" in texts(rest)
    scene.put(revision=3, next_checks=("Is the disk full?",), count=3)
    scene.at(340)
    scene.at(700)
    assert (parent["edits"], rest["edits"]) == (2, 1), "what has not changed is not sent"


def test_a_details_message_that_is_deleted_is_posted_again(scene: Scene, server: SlackStandIn) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    (parent,) = server.parents()
    server.messages.remove(server.replies(parent)[0])
    scene.put(revision=2, impact="It is worse.")
    scene.at(31)
    scene.at(331)
    (rest,) = server.replies(parent)
    assert "It is worse." in texts(rest)


def test_another_fix_is_told_in_the_channel_and_other_numbers_in_the_thread(scene: Scene, server: SlackStandIn) -> None:
    first, *others = scene.put().fix
    scene.at(0)
    scene.at(30)
    (parent,) = server.parents()
    numbers = replace(first, set={"producer.max.request.size": "4194304"})
    scene.put(revision=2, fix=(numbers, *others))
    scene.at(31)
    scene.at(331)
    scene.put(revision=3, fix=(numbers, *others), count=7)
    scene.at(340)
    scene.at(700)
    scene.put(revision=4, fix=(RenderedStep("Restart it", run="systemctl restart kafka"),))
    scene.at(710)
    scene.at(1200)
    _, numbers_reply, other_reply = server.replies(parent)
    assert "producer.max.request.size=4194304" in texts(numbers_reply)
    assert "systemctl restart kafka" in texts(other_reply)
    assert [numbers_reply["reply_broadcast"], other_reply["reply_broadcast"]] == [False, True]


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long", "invalid_attachments"])
def test_where_slack_refuses_the_blocks_the_message_is_sent_as_text(scene: Scene, server: SlackStandIn, error: str) -> None:
    server.script(POST, error, "accept", error)
    scene.put()
    scene.at(0)
    assert scene.at(30) == 1
    (parent,) = server.parents()
    (rest,) = server.replies(parent)
    assert parent["blocks"] == parent["attachments"] == rest["blocks"] == []
    assert "producer.max.request.size=2097152" in parent["text"]
    assert "The task is dead until someone restarts it" in rest["text"]
    assert scene.entry().why == f"Slack refused its blocks ({error}), so it was sent as text"


def test_where_slack_knows_messages_by_our_id_none_is_posted_twice_and_it_is_the_newest(
    scene: Scene, server: SlackStandIn
) -> None:
    server.dedupes = True
    server.script(POST, "drop")
    server.script("conversations.history", *["missing_scope"] * 9)
    scene.put()
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, title="Another title")
    scene.at(36)
    (parent,) = server.parents()
    assert "Another title" in texts(parent)


def test_a_gateway_that_does_not_echo_messages_is_no_deletion(scene: Scene, server: SlackStandIn) -> None:
    server.echoes = False
    scene.put()
    scene.at(0)
    assert scene.at(30) == 1
    (parent,) = server.parents()
    assert [reply["text"] for reply in server.replies(parent)] == ["Details"]
    assert server.count("chat.delete") == 0


def test_a_message_deleted_before_its_reply_is_posted_again_and_no_reply_stands_alone(
    scene: Scene, server: SlackStandIn
) -> None:
    scene.put()
    scene.at(0)
    server.vanish()
    assert scene.at(30) == 1
    (parent,) = server.parents()
    assert parent["metadata"]["event_payload"] == {"key": "inc-1"}
    assert [reply["text"] for reply in server.replies(parent)] == ["Details"]


def test_when_the_channel_may_not_be_read_it_is_told_twice_rather_than_never(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "drop")
    server.script("conversations.history", "missing_scope")
    scene.put()
    scene.at(0)
    scene.at(30)
    assert scene.at(36) == 1
    assert len(server.parents()) == 2


def test_a_message_that_no_answer_names_is_looked_for_and_taken_up(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "bare")
    scene.put()
    scene.at(0)
    assert scene.at(30) == 0
    assert "does not name the message" in scene.entry().why
    assert scene.at(36) == 1
    (parent,) = server.parents()
    assert len(server.replies(parent)) == 1


def test_where_no_answer_ever_names_a_message_it_is_not_posted_again_and_again(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, *["bare"] * 50)
    server.script("conversations.history", *["missing_scope"] * 50)
    scene.put()
    scene.at(0)
    for second in range(30, 3000, 30):
        scene.at(second)
    assert len(server.parents()) == 2
    assert scene.entry().state is DeliveryState.REJECTED
    assert "not posted again until there is something new" in scene.entry().why


def test_a_search_that_finds_what_slack_never_answers_is_no_end_of_the_notifier(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, "drop")
    server.script("conversations.history", "shapeless", "page:403")
    scene.put()
    scene.at(0)
    scene.at(30)
    assert [scene.at(36), scene.at(60), scene.at(120)] == [0, 0, 1]
    assert len(server.parents()) == 1


def test_a_channel_is_named_in_any_script(server: SlackStandIn, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    scene = Scene(store, {"ops": slack.open_receiver("#2339_데이터_모니터링", TOKEN, server.base_url)})
    server.script(POST, "drop")
    scene.put()
    scene.at(0)
    scene.at(30)
    assert scene.at(36) == 1
    assert len(server.parents("2339_데이터_모니터링")) == 1
    store.close()


def test_a_storm_of_incidents_is_paced_and_complete(scene: Scene, server: SlackStandIn) -> None:
    server.script(POST, *["accept", "accept", "ratelimited:3"] * 3)
    for number in range(10):
        scene.put(id=f"inc-{number}")
    scene.at(0)
    for second in range(30, 90):
        scene.at(second)
    keys = [parent["metadata"]["event_payload"]["key"] for parent in server.parents()]
    assert sorted(keys) == [f"inc-{number}" for number in range(10)]


def test_a_flood_is_one_message_that_slack_takes_and_finds_again(scene: Scene, server: SlackStandIn) -> None:
    for number in range(60):
        scene.put(id=f"inc-{number}", severity="low", labels={"topic": f"orders-{number}-" + "x" * 200})
    scene.at(0)
    server.script(POST, "drop")
    for second in range(30, 60):
        scene.at(second)
    (parent,) = server.parents()
    assert "60 incidents at once: 60 still open" in texts(parent)
    assert "60 x low: such as" in texts(parent)
    assert {entry.state for entry in scene.store.outbox().entries().values()} == {DeliveryState.DELIVERED}


def forget(scene: Scene) -> None:
    """Take away what a process that died never wrote."""
    from sqlalchemy import delete

    from engine.store import schema

    with scene.store._begin() as connection:
        connection.execute(delete(schema.deliveries))
