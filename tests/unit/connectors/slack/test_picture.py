"""The picture in the thread: once, once more when it is resolved, and never at the expense of a message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from connectors import slack
from connectors.slack.picture import Painter
from engine.model.incidents import Incident
from engine.model.notifications import DeliveryState
from engine.store import Store
from tests.standins.slack import TOKEN, SlackStandIn
from tests.unit.deliver.scene import Scene

TICKET, SHARE = "files.getUploadURLExternal", "files.completeUploadExternal"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def server() -> Iterator[SlackStandIn]:
    with SlackStandIn() as running:
        yield running


def paint(incident: Incident) -> bytes | None:
    return PNG + incident.status.encode()


def scene_of(server: SlackStandIn, store: Store, painter: Painter | None = paint) -> Scene:
    return Scene(store, {"ops": slack.open_receiver("#kafka-ops", TOKEN, server.base_url, paint=painter)})


@pytest.fixture
def scene(server: SlackStandIn, store: Store) -> Scene:
    return scene_of(server, store)


def told(scene: Scene) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)


def test_the_thread_has_the_picture_once_and_once_more_when_it_is_resolved(scene: Scene, server: SlackStandIn) -> None:
    told(scene)
    (parent,) = server.parents()
    (first,) = server.files
    assert first["thread_ts"] == parent["ts"]
    assert first["title"] == "A Connect task produced a record larger than max.request.size"
    assert first["png"] == PNG + b"open"
    scene.put(revision=2, count=40)
    scene.at(340)
    assert len(server.files) == 1, "growth draws no other"
    scene.put(revision=3, status="resolved")
    scene.at(700)
    assert [file["png"] for file in server.files] == [PNG + b"open", PNG + b"resolved"]
    scene.put(revision=4, status="open")
    scene.at(1100)
    scene.put(revision=5, status="resolved")
    scene.at(1500)
    assert len(server.files) == 2
    assert len(server.parents()) == 1


def test_without_a_painter_or_a_picture_nothing_is_uploaded(server: SlackStandIn, store: Store) -> None:
    scene = scene_of(server, store, lambda incident: None)
    told(scene)
    assert len(server.parents()) == 1
    assert server.count(TICKET) == 0


def test_a_missing_scope_switches_pictures_off_and_nothing_else(scene: Scene, server: SlackStandIn) -> None:
    server.granted.remove("files:write")
    told(scene)
    assert scene.entry().state is DeliveryState.DELIVERED
    scene.put(revision=2, count=40)
    scene.at(340)
    assert (len(server.parents()), server.count(TICKET), server.files) == (1, 1, [])
    receiver = scene.receivers["ops"]
    assert isinstance(receiver, slack.SlackReceiver)
    assert receiver.missing_rights() == ["the app has no scope files:write: there are no pictures in the threads"]


def test_an_open_incident_gets_its_picture_after_a_restart_with_the_missing_scope(
    scene: Scene, server: SlackStandIn, store: Store
) -> None:
    server.granted.remove("files:write")
    told(scene)
    server.granted.append("files:write")
    scene.put(revision=2, count=40)
    scene.at(340)
    assert (server.count(TICKET), server.files) == (1, []), "not with each edit"
    again = scene_of(server, store)
    again.put(revision=3, count=50)
    again.at(700)
    assert (server.count(TICKET), len(server.files)) == (2, 1)


@pytest.mark.parametrize("call", [TICKET, "upload", SHARE])
@pytest.mark.parametrize("behaviour", ["status:500", "page:403", "refuse", "ratelimited:60"])
def test_a_failed_upload_is_tried_again_with_the_next_notification_and_repeats_no_message(
    scene: Scene, server: SlackStandIn, call: str, behaviour: str
) -> None:
    server.script(call, behaviour)
    told(scene)
    assert (scene.entry().state, scene.entry().unsure_since) == (DeliveryState.DELIVERED, None)
    scene.put(revision=2, count=40)
    scene.at(340)
    assert len(server.parents()) == 1
    assert len(server.replies(server.parents()[0])) == 1
    assert len(server.files) == (0 if call == SHARE and behaviour != "ratelimited:60" else 1), "never one too many"


def test_a_picture_that_was_shared_without_an_answer_is_not_shared_again(scene: Scene, server: SlackStandIn) -> None:
    server.script(SHARE, "drop")
    told(scene)
    scene.put(revision=2, count=40)
    scene.at(340)
    assert len(server.files) == 1


def test_after_a_kill_between_upload_and_receipt_there_is_one_picture_more_at_most(
    scene: Scene, server: SlackStandIn, store: Store
) -> None:
    scene.put()
    scene.at(0)

    def killed(incident: Incident) -> bytes | None:
        raise KeyboardInterrupt

    # it dies while it draws, after it has posted
    receiver = slack.open_receiver("#kafka-ops", TOKEN, server.base_url, paint=killed)
    dying = Scene(store, {"ops": receiver})
    with pytest.raises(KeyboardInterrupt):
        dying.at(30)
    scene.restart()
    scene.now += timedelta(seconds=60)
    scene.at(90)
    assert (len(server.parents()), len(server.files)) == (1, 1)


def test_an_address_for_the_upload_that_is_not_encrypted_is_sent_nothing(
    scene: Scene, server: SlackStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlackStandIn, "address", "http://files.example")
    told(scene)
    assert server.count("upload") == 0
    assert scene.entry().state is DeliveryState.DELIVERED
