"""A stand-in for the Slack API: a real HTTP server on loopback that keeps channels and messages, and can be told to misbehave.

Checked like Slack: token, channel, limits of blocks. Run it by hand with `python -m tests.standins.slack`.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from connectors.slack.limits import MOST_SHOWN, MOST_SHOWN_BLOCKS, breaches, shown_characters
from connectors.slack.scopes import SCOPES
from tests.standins.http import HttpStandIn, StandInReply, TakenRequest

TOKEN = "xoxb-stand-in"
CHANNELS = {"kafka-ops": "C00000001", "2339_데이터_모니터링": "C00000002"}
NOW = 1_700_000_000.0  # what its clock shows when it starts


class SlackStandIn(HttpStandIn):
    """The server. Words of its own for `script`: `bare` (take it, answer without saying which message it is), `shapeless` (an
    answer that is no object), or an error word of Slack. Below its root lie /api/, /upload/..., /services/... (incoming
    webhook) and /hook (any other webhook)."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.messages: list[dict[str, Any]] = []
        self.dedupes = False  # by `client_msg_id`, which Slack does not document
        self.hooks: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.echoes = True  # an answer has the message as it was posted
        self.granted: list[str] = list(SCOPES)
        self.strange: set[str] = set()  # the channels that the app is not in
        self.archived: set[str] = set()
        self.uploads: dict[str, bytes] = {}  # the bytes of files by id
        self.files: list[dict[str, Any]] = []  # the files that were shared: thread_ts, title, png
        self._clock = -1
        self._vanishing = False

    @property
    def base_url(self) -> str:
        """What stands for https://slack.com/api/."""
        return f"{self.address}/api/"

    @property
    def webhook_url(self) -> str:
        """An incoming webhook of the first channel."""
        return f"{self.address}/services/T0/B0/secret"

    def vanish(self) -> None:
        """Let somebody delete the next message as soon as it is posted."""
        self._vanishing = True

    def parents(self, channel: str = "kafka-ops") -> list[dict[str, Any]]:
        """Return the messages of a channel that are no replies, oldest first."""
        return [m for m in self.messages if m["channel"] == CHANNELS[channel] and not m.get("thread_ts")]

    def replies(self, parent: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the replies to a message, oldest first."""
        return [m for m in self.messages if m.get("thread_ts") == parent["ts"]]

    def call_of(self, path: str) -> str:
        """Return the method of the API, `services` or `hook`."""
        return path.removeprefix("/api/") if path.startswith("/api/") else super().call_of(path)

    def behaviour(self, request: TakenRequest) -> str:
        """Note a call and return what it is to meet."""
        if request.call == "hook":
            self.hooks.append((request.headers, request.value))
        return super().behaviour(request)

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Do what a call asks and return Slack's answer."""
        is_api = request.path.startswith("/api/")
        if behaviour == "shapeless":
            return StandInReply(200, [1])
        if behaviour not in ("accept", "drop", "hold", "bare"):
            return StandInReply(200, {"ok": False, "error": behaviour}) if is_api else StandInReply(404, behaviour)
        if request.call == "upload":
            self.uploads[request.path.rpartition("/")[2]] = request.body
            return StandInReply(200, f"OK - {request.size}")
        if is_api and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return StandInReply(200, {"ok": False, "error": "invalid_auth"})
        method = getattr(self, f"_{request.call.replace('.', '_')}", None)
        answer = method(request.value) if method else {"ok": False, "error": "unknown_method"}
        if behaviour == "bare":
            return StandInReply(200, {"ok": True})
        if not is_api:
            return StandInReply(200, "ok") if answer["ok"] else StandInReply(200, str(answer["error"]))
        return StandInReply(200, answer, {"X-OAuth-Scopes": ",".join(self.granted)})

    def _auth_test(self, said: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "user": "tocsin", "team": "Stand-in"}

    def _blocks_validate(self, said: dict[str, Any]) -> dict[str, Any]:
        wrong = breaches("-", said["blocks"])
        return {"ok": False, "error": "invalid_blocks", "detail": wrong} if wrong else {"ok": True}

    def _chat_postMessage(self, said: dict[str, Any]) -> dict[str, Any]:
        channel = CHANNELS.get(str(said["channel"]).removeprefix("#"), said["channel"])
        if channel not in CHANNELS.values():
            return {"ok": False, "error": "channel_not_found"}
        if wrong := _wrong(said):
            return {"ok": False, "error": "invalid_blocks", "detail": wrong}
        for message in self.messages if self.dedupes else ():
            if message.get("client_msg_id") == said.get("client_msg_id"):
                return {"ok": True, "channel": channel, "ts": message["ts"], "message": message}
        self._clock += 1
        stored = {**said, "channel": channel, "ts": f"{NOW + self._clock:.6f}", "edits": 0}
        if not any(m["ts"] == said.get("thread_ts") for m in self.messages):
            stored.pop("thread_ts", None)  # a reply to a message that is gone is one of its own
        self.messages.append(stored)
        if self._vanishing:
            self._vanishing = False
            self.messages.remove(stored)
        return {"ok": True, "channel": channel, "ts": stored["ts"], "message": stored if self.echoes else {}}

    def _chat_delete(self, said: dict[str, Any]) -> dict[str, Any]:
        remaining = [m for m in self.messages if (m["channel"], m["ts"]) != (said["channel"], said["ts"])]
        is_known, self.messages[:] = len(remaining) < len(self.messages), remaining
        return {"ok": True} if is_known else {"ok": False, "error": "message_not_found"}

    def _chat_update(self, said: dict[str, Any]) -> dict[str, Any]:
        if wrong := _wrong(said):
            return {"ok": False, "error": "invalid_blocks", "detail": wrong}
        for message in self.messages:
            if (message["channel"], message["ts"]) == (said["channel"], said["ts"]):
                message.update(said, edits=message["edits"] + 1)
                return {"ok": True, "channel": said["channel"], "ts": said["ts"]}
        return {"ok": False, "error": "message_not_found"}

    def _conversations_list(self, said: dict[str, Any]) -> dict[str, Any]:
        needed = "channels:read" if said.get("types") == "public_channel" else "groups:read"
        if needed not in self.granted:
            return {"ok": False, "error": "missing_scope", "needed": needed}
        channels = [self._channel(name) for name in CHANNELS]
        return {"ok": True, "channels": channels if said.get("types") == "public_channel" else []}

    def _conversations_info(self, said: dict[str, Any]) -> dict[str, Any]:
        names = [name for name, id_ in CHANNELS.items() if id_ == said["channel"]]
        return {"ok": True, "channel": self._channel(names[0])} if names else {"ok": False, "error": "channel_not_found"}

    def _channel(self, name: str) -> dict[str, Any]:
        state = {"is_member": name not in self.strange, "is_archived": name in self.archived, "is_private": False}
        return {"id": CHANNELS[name], "name": name, **state}

    def _conversations_history(self, said: dict[str, Any]) -> dict[str, Any]:
        found = [m for m in self.messages if m["channel"] == said["channel"] and not m.get("thread_ts")]
        return {"ok": True, "messages": found[::-1]}

    def _conversations_replies(self, said: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "messages": [m for m in self.messages if said["ts"] in (m["ts"], m.get("thread_ts"))]}

    def _files_getUploadURLExternal(self, said: dict[str, Any]) -> dict[str, Any]:
        if "files:write" not in self.granted:
            return {"ok": False, "error": "missing_scope", "needed": "files:write"}
        id_ = f"F{len(self.uploads):08}"
        self.uploads[id_] = b""
        return {"ok": True, "file_id": id_, "upload_url": f"{self.address}/upload/v1/{id_}"}

    def _files_completeUploadExternal(self, said: dict[str, Any]) -> dict[str, Any]:
        if said["channel_id"] not in CHANNELS.values():
            return {"ok": False, "error": "channel_not_found"}
        for file in json.loads(said["files"]):
            png = self.uploads.get(file["id"], b"")
            if not png:
                return {"ok": False, "error": "file_not_found"}
            self.files.append({"thread_ts": said["thread_ts"], "title": file["title"], "png": png})
        return {"ok": True, "files": []}

    def _hook(self, said: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True}

    def _services(self, said: dict[str, Any]) -> dict[str, Any]:
        return self._chat_postMessage({**said, "channel": "#kafka-ops"})


def _wrong(said: dict[str, Any]) -> list[str]:
    """Return what Slack would refuse in a message, and what our own limits do of the message of an incident."""
    blocks, attachments = said.get("blocks", []), said.get("attachments", [])
    wrong = breaches(said.get("text", ""), blocks, attachments)
    is_parent = "metadata" in said and "reply" not in said["metadata"]["event_payload"]
    all_blocks = [*blocks, *(block for attachment in attachments for block in attachment["blocks"])]
    if is_parent and (len(all_blocks) > MOST_SHOWN_BLOCKS or shown_characters(all_blocks) > MOST_SHOWN):
        wrong.append("more than 10 blocks or 1,500 characters in the message of an incident")
    return wrong


if __name__ == "__main__":
    with SlackStandIn(port=8329) as running:
        print(f"a stand-in for Slack listens at {running.base_url}, token {TOKEN}; Ctrl-C ends it")
        threading.Event().wait()
