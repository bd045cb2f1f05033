"""Slack's Socket Mode: buttons, forms and the command /tocsin, over a connection that tocsin opens, without a public address.

An interaction is recorded first and acknowledged then, which takes milliseconds. What cannot be recorded is not acknowledged:
Slack delivers it again, up to three times, or tells the person that it failed. So nothing is lost when the process is killed
between, and nothing is done twice, because acts have keys (connectors/slack/interaction).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from socket import SHUT_RDWR
from typing import Any

from msgspec import Struct
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from connectors.slack.answers import NotSlack
from connectors.slack.client import StrictClient
from connectors.slack.command import Command, answer_command
from connectors.slack.interaction import Click, click_of, clicked, form, submitted
from connectors.slack.message import escaped
from engine.errors import TocsinError, UnknownIncident
from engine.model.acts import ActKind, ActOutcome
from engine.model.addresses import may_carry_secrets
from engine.model.words import ENGLISH, Words
from engine.ports import ActAnswer, ActDesk, Say

RETRY_FIRST_S, RETRY_LONGEST_S = 5.0, 300.0
STOP_S = 20.0  # how long an attempt to connect is waited for
_FORMS = frozenset((ActKind.SILENCE.value, ActKind.RESOLVE.value))
_SILENT = logging.Logger("slack_sdk.socket_mode")
_SILENT.addHandler(logging.NullHandler())
_FAILURES = (SlackClientError, NotSlack, OSError, HTTPException, ValueError)

Payload = Mapping[str, Any]


class InteractionAnswer(Struct, frozen=True):
    """What an interaction is acknowledged with, and what is done afterwards: a form to open for a click, or words for its user
    alone."""

    payload: Payload | None = None
    form_of: Click | None = None
    whisper: tuple[str, str, str] | None = None  # channel, user id, text


class SlackSocket:
    """The connection of one app. `start` and `stop` it; everything else happens on its threads.

    Args:
        client: with the bot's token.
        app_token: with the scope connections:write.
        desk: where acts are recorded.
        say: takes a sentence about a connection that fails or an interaction that could not be recorded.
        words: those of forms and answers.
    """

    def __init__(
        self,
        client: WebClient,
        app_token: str,
        desk: ActDesk,
        say: Say,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        words: Words = ENGLISH,
    ) -> None:
        self._words = words
        self._client, self._desk, self._say, self._now = client, desk, say, now
        self._socket = _LocalSocket(app_token, logger=_SILENT, web_client=client, ping_interval=5)
        self._socket.socket_mode_request_listeners.append(self._on_request)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._connect, name="slack-socket", daemon=True)

    def start(self) -> None:
        """Connect, and again whenever that fails; the SDK renews a connection that Slack or the network ends."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect; an interaction that is being recorded is finished."""
        self._stopping.set()
        self._thread.join(STOP_S)  # it may be connecting
        self._socket.end()

    def answer(self, kind: str, payload: Payload) -> InteractionAnswer:
        """Do what an interaction asks for. Raises StoreError when it could not be recorded."""
        if kind == "slash_commands":
            return InteractionAnswer(answer_command(Command(payload, self._now()), self._desk, self._words))
        if kind == "interactive" and payload.get("type") == "view_submission":
            return self._submitted(payload)
        click = click_of(payload) if kind == "interactive" and payload.get("type") == "block_actions" else None
        if click is None:
            return InteractionAnswer()
        if click.action in _FORMS:
            return InteractionAnswer(form_of=click)
        try:
            problem = _problem(self._desk.record(clicked(click, self._now())), self._words)
        except UnknownIncident as error:
            problem = str(error)
        return InteractionAnswer(whisper=(click.channel, click.user.id, problem) if problem else None)

    def _submitted(self, payload: Payload) -> InteractionAnswer:
        act = submitted(payload, self._now())
        if act is None:
            return InteractionAnswer()
        try:
            problem = _problem(self._desk.record(act), self._words)
        except UnknownIncident as error:
            problem = str(error)
        errors = {payload["view"]["blocks"][-1]["block_id"]: problem[:150]}
        return InteractionAnswer({"response_action": "errors", "errors": errors} if problem else None)

    def _on_request(self, socket: BaseSocketModeClient, request: SocketModeRequest) -> None:
        try:
            answer = self.answer(request.type, request.payload)
        except TocsinError as error:
            self._say(f"Slack: what somebody pressed could not be recorded, and is not acknowledged: {error}")
            return
        payload = None if answer.payload is None else dict(answer.payload)
        socket.send_socket_mode_response(SocketModeResponse(request.envelope_id, payload))
        try:
            if answer.form_of is not None:
                self._client.views_open(trigger_id=answer.form_of.trigger, view=dict(form(answer.form_of, self._words)))
            if answer.whisper is not None:
                channel, user, text = answer.whisper
                self._client.chat_postEphemeral(channel=channel, user=user, text=escaped(text))
        except _FAILURES as error:
            self._say(f"Slack: what somebody pressed could not be answered: {_reason(error)}")

    def _connect(self) -> None:
        wait_s, last_problem = RETRY_FIRST_S, ""
        while not self._stopping.is_set():
            try:
                self._socket.wss_uri = None  # an address can be used once
                self._socket.connect()
                return
            except Exception as error:  # this thread must survive everything: without it no button works
                problem = _reason(error)
                if problem != last_problem:
                    self._say(f"Slack: buttons and /tocsin do nothing yet: {problem}; it is tried again")
                last_problem = problem
            self._stopping.wait(wait_s)
            wait_s = min(RETRY_LONGEST_S, wait_s * 2)


class _LocalSocket(SocketModeClient):
    """The SDK's client, which connects to encrypted addresses only, or to this machine."""

    def end(self) -> None:
        """Close the connection when what was received is done, without waiting for the SDK's own threads."""
        self.closed, self.auto_reconnect_enabled = True, False
        self.current_session_state.terminated = True
        for runner in (self.current_session_runner, self.current_app_monitor, self.message_processor):
            runner.event.set()
        self.message_workers.shutdown()
        if self.current_session is not None and self.current_session.sock is not None:
            with suppress(OSError):  # or the SDK waits for what may still come
                self.current_session.sock.shutdown(SHUT_RDWR)
        self.disconnect()

    def issue_new_wss_url(self) -> str:
        url = str(self.web_client.apps_connections_open(app_token=self.app_token)["url"])
        if not may_carry_secrets(url.replace("ws", "http", 1)):
            raise ValueError("the address of the connection is not encrypted")
        return url


def open_socket(token: str, app_token: str, base_url: str, desk: ActDesk, say: Say, words: Words = ENGLISH) -> SlackSocket:
    """Return the socket of an app, which is not connected yet."""
    client = StrictClient(token=token, base_url=base_url, retry_handlers=[])
    return SlackSocket(client, app_token, desk, say, words=words)


def _problem(answer: ActAnswer, words: Words) -> str:
    """Return why an act had no effect; empty when it had one, or is the same as one before whose effect lasts."""
    if answer.decision.outcome is not ActOutcome.DONE:
        return words("Nothing was changed: {why}", why=words.sentence(answer.decision.sentence))
    is_outdated = answer.is_repeated and answer.decision.sentence == "acknowledged" and answer.incident.status == "open"
    return words("Nothing was changed: you did that before, and the incident has changed since") if is_outdated else ""


def _reason(error: Exception) -> str:
    if isinstance(error, SlackApiError):
        return f"Slack says {error.response.get('error')}"
    return str(error) if isinstance(error, NotSlack) else f"Slack cannot be reached ({type(error).__name__})"
