"""Socket Mode for the stand-in for Slack: a real WebSocket server on loopback, and people who press buttons."""

from __future__ import annotations

import json
import threading
from itertools import count
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from tests.standins.http import StandInReply, TakenRequest
from tests.standins.slack import SlackStandIn

APP_TOKEN = "xapp-stand-in"
ANSWER_S = 3.0  # within which Slack wants an answer
LATE_S = 20.0


class SlackWithPeople(SlackStandIn):
    """The stand-in, with people. `views`: the forms that were opened; `whispers`: what only one user was shown.

    `click`, `submit` and `command` return the envelope; `answer` waits for what it was acknowledged with, `redeliver` sends it
    again.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.views: list[dict[str, Any]] = []
        self.whispers: list[tuple[str, str]] = []
        self.connections = 0
        self._numbers = count(1)
        self._changed = threading.Condition()
        self._sockets: list[ServerConnection] = []
        self._answers: dict[str, Any] = {}
        self._websocket: Server = serve(self._talk, "127.0.0.1", 0)
        self._serving = threading.Thread(target=self._websocket.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._serving.start()
        return super().__enter__()

    def __exit__(self, *details: object) -> None:
        self._websocket.shutdown()
        self._serving.join()
        super().__exit__(*details)

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Do what a call asks; the address of a socket is given for the app's token only."""
        if request.call == "apps.connections.open" and behaviour == "accept":
            if request.headers.get("Authorization") != f"Bearer {APP_TOKEN}":
                return StandInReply(200, {"ok": False, "error": "invalid_auth"})
            host, port = self._websocket.socket.getsockname()[:2]
            return StandInReply(200, {"ok": True, "url": f"ws://{host}:{port}/link/?ticket={next(self._numbers)}"})
        return super().take(request, behaviour)

    def wait_connected(self, times: int = 1) -> None:
        """Return when an app has connected so often, and is connected."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.connections >= times and self._sockets, LATE_S), "nobody connects"

    def drop(self) -> None:
        """End the connection as Slack does when it renews one: the app is told to connect anew."""
        with self._changed:
            sockets = list(self._sockets)
        for socket in sockets:
            socket.send(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))

    def click(self, message: dict[str, Any], action: str, user: str = "jun") -> dict[str, Any]:
        """Let somebody press a button of a message, which may be an old rendering of it."""
        block = next(block for block in message["blocks"] if block["type"] == "actions")
        button = next(button for button in block["elements"] if button["action_id"] == action)
        pressed = {"action_id": action, "block_id": block.get("block_id", ""), "type": "button", "text": button["text"]}
        payload = {"type": "block_actions", "actions": [pressed], "channel": {"id": message["channel"]}}
        return self.send("interactive", {**payload, **self._person(user)})

    def submit(self, view: dict[str, Any], user: str = "jun", **values: str) -> dict[str, Any]:
        """Let somebody submit a form: `values` by the ids of its blocks; what is left out stays as it is preselected."""
        state = {}
        for block in view["blocks"]:
            name, element = block["block_id"], block["element"]
            if element["type"] == "static_select":
                options = {option["value"]: option for option in element["options"]}
                chosen = options[values[name]] if name in values else element["initial_option"]
                state[name] = {element["action_id"]: {"type": "static_select", "selected_option": chosen}}
            else:
                state[name] = {element["action_id"]: {"type": "plain_text_input", "value": values.get(name)}}
        filled = {**view, "state": {"values": state}}
        return self.send("interactive", {"type": "view_submission", "view": filled, **self._person(user)})

    def command(self, text: str, user: str = "jun") -> dict[str, Any]:
        """Let somebody type /tocsin."""
        trigger = f"trigger-{next(self._numbers)}"
        payload = {"command": "/tocsin", "text": text, "user_id": _id(user), "user_name": user, "trigger_id": trigger}
        return self.send("slash_commands", {**payload, "channel_id": "C00000001"})

    def send(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Deliver a payload to the app, which must be connected, and return the envelope."""
        envelope = {"type": kind, "envelope_id": f"envelope-{next(self._numbers)}", "payload": payload}
        self._deliver(envelope)
        return envelope

    def redeliver(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Deliver an interaction again, as Slack does when no answer came."""
        again = {**envelope, "envelope_id": f"envelope-{next(self._numbers)}", "retry_attempt": 1, "retry_reason": "timeout"}
        self._deliver(again)
        return again

    def answer(self, envelope: dict[str, Any], within_s: float = ANSWER_S) -> Any:
        """Return the payload that an envelope was acknowledged with; None for none. Fails when it is not in time."""
        with self._changed:
            assert self._changed.wait_for(lambda: envelope["envelope_id"] in self._answers, within_s), (
                "not acknowledged in time"
            )
            return self._answers[envelope["envelope_id"]]

    def wait_for_view(self, number: int = 1) -> dict[str, Any]:
        """Return the form that was opened as the `number`th."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.views) >= number, LATE_S), "no form was opened"
            return self.views[number - 1]

    def wait_for_whisper(self, number: int = 1) -> tuple[str, str]:
        """Return the user and the text of what was shown to one user alone as the `number`th."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.whispers) >= number, LATE_S), "nobody was told anything"
            return self.whispers[number - 1]

    def _views_open(self, said: dict[str, Any]) -> dict[str, Any]:
        view = said["view"] if isinstance(said["view"], dict) else json.loads(said["view"])
        stored = {**view, "id": f"V{next(self._numbers)}"}
        with self._changed:
            self.views.append(stored)
            self._changed.notify_all()
        return {"ok": True, "view": stored}

    def _chat_postEphemeral(self, said: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            self.whispers.append((said["user"], said["text"]))
            self._changed.notify_all()
        return {"ok": True}

    def _person(self, user: str) -> dict[str, Any]:
        return {"user": {"id": _id(user), "username": user, "name": user}, "trigger_id": f"trigger-{next(self._numbers)}"}

    def _deliver(self, envelope: dict[str, Any]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self._sockets), LATE_S), "no app is connected"
            socket = self._sockets[-1]
        socket.send(json.dumps({**envelope, "accepts_response_payload": True}))

    def _talk(self, socket: ServerConnection) -> None:
        with self._changed:
            self._sockets.append(socket)
            self.connections += 1
            self._changed.notify_all()
        try:
            socket.send(json.dumps({"type": "hello", "num_connections": 1}))
            for message in socket:
                said = json.loads(message)
                with self._changed:
                    self._answers[said["envelope_id"]] = said.get("payload")
                    self._changed.notify_all()
        except ConnectionClosed:
            pass
        finally:
            with self._changed:
                self._sockets.remove(socket)


def _id(user: str) -> str:
    return f"U{user.upper()}"
