"""People act in Slack: whatever they press, however often it arrives, one effect, and the right names; over a real socket."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from connectors import slack
from engine.cli.desk import StoreDesk
from engine.model.acts import Act, ActKind, SilenceScope
from engine.store import Store
from tests.standins.slack import TOKEN
from tests.standins.slack_socket import APP_TOKEN, LATE_S, SlackWithPeople
from tests.unit.deliver.scene import Scene

ROOT = Path(__file__).parents[4]


@pytest.fixture
def server() -> Iterator[SlackWithPeople]:
    with SlackWithPeople() as running:
        yield running


@pytest.fixture
def scene(server: SlackWithPeople, store: Store) -> Scene:
    """An incident that a channel was told of."""
    receiver = slack.open_receiver("#kafka-ops", TOKEN, server.base_url, app_token=APP_TOKEN)
    scene = Scene(store, {"ops": receiver})
    scene.put()
    scene.at(0)
    scene.at(30)
    return scene


@contextmanager
def listening(server: SlackWithPeople, store: Store, said: list[str] | None = None) -> Iterator[None]:
    desk = StoreDesk(store, lambda: None)
    socket = slack.open_socket(TOKEN, APP_TOKEN, server.base_url, desk, (said if said is not None else []).append)
    socket.start()
    try:
        server.wait_connected()
        yield
    finally:
        socket.stop()


@pytest.fixture
def socket(server: SlackWithPeople, store: Store) -> Iterator[None]:
    with listening(server, store):
        yield


def acts(store: Store) -> list[tuple[str, str, str]]:
    """Return (name, kind, account) of every act."""
    return [(act.by, act.kind.value, act.account) for act in store.acts().of("inc-1")]


def test_a_click_is_an_act_with_the_name_of_the_person_and_the_message_shows_it(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    assert server.answer(server.click(message, "acknowledge")) is None
    assert acts(store) == [("jun", "acknowledge", "UJUN")]
    scene.at(40)
    assert "CRITICAL, acknowledged" in str(message["blocks"])
    (row,) = [block for block in message["blocks"] if block["type"] == "actions"]
    assert [button["action_id"] for button in row["elements"]] == ["silence", "resolve"]
    assert row["block_id"] == "tocsin-act:inc-1:1a1", "each edition has ids of its own"
    assert "jun" in str(server.replies(message)[-1]["blocks"])


def test_double_clicks_and_redelivered_ones_are_one_act(
    server: SlackWithPeople, scene: Scene, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    first, second = server.click(message, "acknowledge"), server.click(message, "acknowledge")
    again = [server.redeliver(envelope) for envelope in (first, second, first)]
    for envelope in (first, second, *again):
        server.answer(envelope)
    assert acts(store) == [("jun", "acknowledge", "UJUN")]
    assert server.whispers == [], "nothing went wrong"


def test_a_click_on_an_old_rendering_changes_nothing_that_was_done_since(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    old = copy.deepcopy(message)
    server.answer(server.click(old, "acknowledge"))
    store.acts().record(Act("page-1", "inc-1", ActKind.REOPEN, "mina", "page", datetime.now(UTC)))
    server.answer(server.click(old, "acknowledge"))
    assert [kind for _, kind, _ in acts(store)] == ["acknowledge", "reopen"]
    assert "you did that before, and the incident has changed since" in server.wait_for_whisper()[1]
    scene.at(40)
    server.answer(server.click(message, "acknowledge"))
    assert [kind for _, kind, _ in acts(store)] == ["acknowledge", "reopen", "acknowledge"], "one on the new rendering does"


def test_two_people_at_once_the_second_is_told_who_was_first(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    envelopes = [server.click(message, "acknowledge", user) for user in ("jun", "mina")]
    for envelope in envelopes:
        server.answer(envelope)
    user, said = server.wait_for_whisper()
    ((first, kind, _),) = acts(store)
    assert kind == "acknowledge"
    assert {first, user} in ({"jun", "UMINA"}, {"mina", "UJUN"})
    assert said == f"Nothing was changed: it is acknowledged already (by {first})"


def test_a_connection_that_is_renewed_between_loses_nothing(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    first = server.click(message, "acknowledge")
    server.answer(first)
    server.drop()
    server.wait_connected(2)
    server.answer(server.redeliver(first), LATE_S)
    server.answer(server.click(message, "resolve"), LATE_S)
    view = server.wait_for_view()
    server.answer(server.submit(view, why="cleaned up"))
    assert acts(store) == [("jun", "acknowledge", "UJUN"), ("jun", "resolve", "UJUN")]


def test_a_form_resolves_with_a_reason_and_the_message_is_one_green_line(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    server.answer(server.click(message, "resolve"))
    view = server.wait_for_view()
    assert acts(store) == [], "the form decides"
    submission = server.submit(view, why="the disk was full")
    assert server.answer(submission) is None
    server.answer(server.redeliver(submission))
    assert acts(store) == [("jun", "resolve", "UJUN")]
    scene.at(40)
    assert message["text"].startswith("Resolved:")
    assert len(message["blocks"]) == 1
    assert "by jun: the disk was full" in str(message["blocks"])
    late = server.submit({**view, "id": "V999"}, "mina")
    assert server.answer(late) == {
        "response_action": "errors",
        "errors": {"why": "Nothing was changed: it is resolved already (by jun: the disk was full)"},
    }


def test_a_form_silences_for_two_hours_unless_something_else_is_chosen(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    (message,) = server.parents()
    server.answer(server.click(message, "silence"))
    view = server.wait_for_view()
    server.answer(server.submit(view))
    (silence,) = store.outbox().silences(datetime.now(UTC))
    assert silence.ends_at - silence.starts_at == timedelta(hours=2)
    assert silence.by == "jun"
    server.answer(server.click(message, "silence"))
    server.answer(server.submit(server.wait_for_view(2), span="1 d", scope="rule", why="moving brokers"))
    act = store.acts().of("inc-1")[-1]
    assert (act.scope, act.text) == (SilenceScope.RULE, "moving brokers")


def test_the_command_lists_shows_and_silences(scene: Scene, server: SlackWithPeople, store: Store, socket: None) -> None:
    listed = server.answer(server.command("open"))
    assert listed["response_type"] == "ephemeral" and listed["text"] == "1 open"
    assert "inc-1" in str(listed["blocks"]) and "CRITICAL: A Connect task" in str(listed["blocks"])
    shown = server.answer(server.command("show 1"))
    assert "A Connect task produced a record larger" in str(shown["blocks"])
    silencing = server.command("silence inc-1 30m moving <brokers>")
    assert server.answer(silencing)["text"].startswith("inc-1 is silenced until")
    assert "&lt;brokers&gt;" in server.answer(silencing)["text"], "log text and people's text format nothing"
    server.answer(server.redeliver(silencing))
    assert len(store.outbox().silences(datetime.now(UTC))) == 1
    for text_, said in (("silence 1", "For how long?"), ("show nothing", "there is no incident"), ("dance", "/tocsin open")):
        assert said in server.answer(server.command(text_))["text"]


def test_a_button_that_opens_a_page_is_acknowledged_and_changes_nothing(
    scene: Scene, server: SlackWithPeople, store: Store, socket: None
) -> None:
    link = {"type": "button", "action_id": "open-incident", "text": {"type": "plain_text", "text": "Page"}, "url": "https://t"}
    message = {"blocks": [{"type": "actions", "elements": [link]}], "channel": "C00000001"}
    assert server.answer(server.click(message, "open-incident")) is None
    gone = {
        "blocks": [{"type": "actions", "block_id": "tocsin-act:inc-gone:1", "elements": [{**link, "action_id": "acknowledge"}]}]
    }
    server.answer(server.click({**gone, "channel": "C00000001"}, "acknowledge"))
    assert "there is no incident" in server.wait_for_whisper()[1]
    assert acts(store) == []


def test_what_cannot_be_recorded_is_not_acknowledged_and_comes_again(
    scene: Scene, server: SlackWithPeople, store: Store, tmp_path: Path
) -> None:
    said: list[str] = []
    other = Store.open(f"sqlite:///{tmp_path}/tocsin.db", 0.05)
    (message,) = server.parents()
    with listening(server, other, said):
        with store._begin() as connection:
            connection.execute(text("SELECT 1"))
            click = server.click(message, "acknowledge")
            with pytest.raises(AssertionError, match="not acknowledged"):
                server.answer(click, 1.0)
        server.answer(server.redeliver(click))
    other.close()
    assert acts(store) == [("jun", "acknowledge", "UJUN")]
    assert "could not be recorded, and is not acknowledged" in said[0]


def test_a_wrong_app_token_is_said_once_and_tried_again(
    server: SlackWithPeople, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.slack.socket.RETRY_FIRST_S", 0.01)
    said: list[str] = []
    server.script("apps.connections.open", "invalid_auth", "invalid_auth", "status:503")
    with listening(server, store, said):
        assert said[0] == "Slack: buttons and /tocsin do nothing yet: Slack says invalid_auth; it is tried again"
        assert len(said) == 2


@pytest.mark.slow
def test_kill_9_between_click_and_write_loses_nothing_and_doubles_nothing(
    scene: Scene, server: SlackWithPeople, store: Store, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.unit.connectors.slack.socket_process",
        f"sqlite:///{tmp_path}/tocsin.db",
        server.base_url,
    ]
    (message,) = server.parents()
    killed = subprocess.Popen(command, cwd=ROOT)
    server.wait_connected()
    with store._begin() as connection:  # what the process would write waits for this
        connection.execute(text("SELECT 1"))
        click = server.click(message, "acknowledge")
        with pytest.raises(AssertionError, match="not acknowledged"):
            server.answer(click, 0.5)
        killed.kill()
        killed.wait()
    assert acts(store) == []
    resumed = subprocess.Popen(command, cwd=ROOT)
    try:
        server.wait_connected(2)
        server.answer(server.redeliver(click), LATE_S)
        server.answer(server.redeliver(click), LATE_S)
    finally:
        resumed.kill()
        resumed.wait()
    assert acts(store) == [("jun", "acknowledge", "UJUN")]


def test_no_token_is_in_what_is_printed(server: SlackWithPeople) -> None:
    receiver: Any = slack.open_receiver("#kafka-ops", TOKEN, server.base_url, app_token=APP_TOKEN)
    assert TOKEN not in repr(receiver) and APP_TOKEN not in repr(receiver)
