"""A stand-in for the Slack API: a real HTTP server on loopback that keeps channels and messages, and can be told to misbehave.

Checked like Slack: token, channel, limits of blocks. Run it by hand with `python -m tests.standins.slack`.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from connectors.slack.limits import MOST_SHOWN, MOST_SHOWN_BLOCKS, breaches, shown_characters
from connectors.slack.scopes import SCOPES

TOKEN = "xoxb-stand-in"
CHANNELS = {"kafka-ops": "C00000001", "2339_데이터_모니터링": "C00000002"}
NOW = 1_700_000_000.0  # what its clock shows when it starts


class SlackStandIn:
    """The server. `script` what comes next for a method: `accept`, `ratelimited:<seconds>`, `drop` (take it, then cut the
    connection), `refuse` (cut the connection before anything is taken), `hold` (take it, never answer), `stall` (take nothing,
    never answer), `status:500`, `page:403` (a proxy's page instead), `redirect:<address>`, `bare` (take it, answer without
    saying which message it is), `shapeless` (an answer that is no object), `huge` (a body without end), `drip` (a byte now and
    then), or an error word of Slack."""

    def __init__(self, port: int = 0) -> None:
        self.messages: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.dedupes = False  # by `client_msg_id`, which Slack does not document
        self.hooks: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.echoes = True  # an answer has the message as it was posted
        self.granted: list[str] = list(SCOPES)
        self.strange: set[str] = set()  # the channels that the app is not in
        self.archived: set[str] = set()
        self._clock = -1
        self._vanishing = False
        self._scripts: defaultdict[str, list[str]] = defaultdict(list)
        self._lock = threading.Lock()
        self._over = threading.Event()
        handler = type("Bound", (_Handler,), {"slack": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> SlackStandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Its root; below it lie /api/, /services/... (incoming webhook) and /hook (any other webhook)."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """What stands for https://slack.com/api/."""
        return f"{self.address}/api/"

    @property
    def webhook_url(self) -> str:
        """An incoming webhook of the first channel."""
        return f"{self.address}/services/T0/B0/secret"

    def script(self, method: str, *behaviours: str) -> None:
        """Say how the next calls of `method` go; after these, all are accepted."""
        self._scripts[method].extend(behaviours)

    def vanish(self) -> None:
        """Let somebody delete the next message as soon as it is posted."""
        self._vanishing = True

    def unscript(self) -> None:
        """Forget what was said of calls that have not come."""
        with self._lock:
            self._scripts.clear()

    def parents(self, channel: str = "kafka-ops") -> list[dict[str, Any]]:
        """Return the messages of a channel that are no replies, oldest first."""
        return [m for m in self.messages if m["channel"] == CHANNELS[channel] and not m.get("thread_ts")]

    def replies(self, parent: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the replies to a message, oldest first."""
        return [m for m in self.messages if m.get("thread_ts") == parent["ts"]]

    def keep_waiting(self) -> None:
        """Return when the stand-in ends: what a call meets that is never answered."""
        self._over.wait()

    def is_over(self, within_s: float) -> bool:
        """Return whether the stand-in ends within so long."""
        return self._over.wait(within_s)

    def count(self, method: str) -> int:
        """Return how often `method` was called."""
        return sum(1 for called, _ in self.calls if called == method)

    def answer(self, method: str, said: dict[str, Any]) -> dict[str, Any]:
        """Do what a call asks and return Slack's answer."""
        with self._lock:
            done = getattr(self, f"_{method.replace('.', '_')}", None)
            return done(said) if done else {"ok": False, "error": "unknown_method"}

    def behaviour(self, method: str, said: dict[str, Any]) -> str:
        """Note a call and return what it is to meet."""
        with self._lock:
            self.calls.append((method, said))
            return self._scripts[method].pop(0) if self._scripts[method] else "accept"

    def _auth_test(self, said: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "user": "tocsin", "team": "Stand-in"}

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


class _Handler(BaseHTTPRequestHandler):
    slack: SlackStandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if "json" in self.headers.get("Content-Type", ""):
            self._meet(json.loads(body or "{}"))
        else:
            self._meet(dict(parse_qsl(body)))

    def do_GET(self) -> None:
        self._meet(dict(parse_qsl(urlsplit(self.path).query)))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _meet(self, said: dict[str, Any]) -> None:
        path = urlsplit(self.path).path
        method = path.removeprefix("/api/") if path.startswith("/api/") else path.split("/")[1]
        behaviour = self.slack.behaviour(method, said)
        if method == "hook":
            self.slack.hooks.append((dict(self.headers.items()), said))
        if behaviour in ("refuse", "stall"):
            self._leave(behaviour == "stall")
            return
        if behaviour in ("huge", "drip"):
            self._go_on(behaviour == "drip")
        elif behaviour == "shapeless":
            self._send(200, b"[1]", "application/json")
        elif behaviour.startswith("page"):
            page = b"<html><style>p {}</style><body><h1>Access denied</h1> <p>by the proxy.</p></body></html>"
            self._send(int(behaviour.partition(":")[2]), page, "text/html")
        elif behaviour.startswith("redirect"):
            self._send(302, b"", "text/html", {"Location": behaviour.partition(":")[2]})
        elif behaviour == "bare":
            self.slack.answer(method, said)
            self._send(200, b'{"ok": true}', "application/json")
        elif behaviour.startswith("ratelimited"):
            after = behaviour.partition(":")[2]
            self._reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": after})
        elif behaviour.startswith("status"):
            self._reply(int(behaviour.partition(":")[2]), None)
        elif behaviour not in ("accept", "drop", "hold"):
            self._reply(200 if path.startswith("/api/") else 404, {"ok": False, "error": behaviour})
        elif path.startswith("/api/") and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._reply(200, {"ok": False, "error": "invalid_auth"})
        else:
            answer = self.slack.answer(method, said)
            if behaviour == "accept":
                self._reply(200, answer, {"X-OAuth-Scopes": ",".join(self.slack.granted)})
            else:
                self._leave(behaviour == "hold")

    def _leave(self, waiting: bool) -> None:
        """Give no answer: let the caller wait for it, or cut the connection."""
        self.close_connection = True
        if waiting:
            self.slack.keep_waiting()

    def _go_on(self, slowly: bool) -> None:
        """Answer without end: as much as the caller takes, or a byte now and then."""
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while not self.slack.is_over(0.05 if slowly else 0):
                self.wfile.write(b" " if slowly else b" " * (1 << 20))
        except OSError:
            pass  # the caller has hung up

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _reply(self, status: int, answer: dict[str, Any] | None, headers: dict[str, str] | None = None) -> None:
        plain = not self.path.startswith("/api/")
        word = "<html>no</html>" if answer is None else "ok" if answer["ok"] else str(answer["error"])
        body = (word if plain or answer is None else json.dumps(answer)).encode()
        self._send(status, body, "text/plain" if plain or answer is None else "application/json", headers)


if __name__ == "__main__":
    with SlackStandIn(port=8329) as running:
        print(f"a stand-in for Slack listens at {running.base_url}, token {TOKEN}; Ctrl-C ends it")
        threading.Event().wait()
