"""What people do in Slack: what a click, a form or a command asks for, and the forms. Pure.

Slack delivers an interaction again when no answer comes within 3 s. So every act has a key that follows from what was pressed:
of a button the incident, the edition that its message showed, and the user; of a form its id; of a command its trigger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from connectors.slack.blocks import ACTIONS
from connectors.slack.limits import SlackBlock
from engine.model.acts import MOST_TEXT, SILENCE_SPANS, USUAL_SPAN, Act, ActKind, SilenceScope
from engine.model.words import ENGLISH, Words, marked

VIA = "slack"
_SCOPE_WORDS = marked("this incident", "its rule in its cluster", "its entity, whatever the rule")
_SCOPES = dict(zip((SilenceScope.INCIDENT, SilenceScope.RULE, SilenceScope.ENTITY), _SCOPE_WORDS, strict=True))
_TITLES = {True: marked("Silence the incident", "Silence"), False: marked("Resolve the incident", "Resolve")}
_WHY, _SPAN, _SCOPE = "why", "span", "scope"


class SlackUser(Struct, frozen=True):
    """A person, as Slack names them."""

    id: str
    name: str


class Click(Struct, frozen=True):
    """A button that was pressed: `action` is an ActKind's value; `edition` is that of the rendering it was in. `channel` is
    where to answer, `trigger` opens a form."""

    incident: str
    edition: str
    action: str
    user: SlackUser
    channel: str
    trigger: str


def click_of(payload: Mapping[str, Any]) -> Click | None:
    """Return the click of a `block_actions` payload; None when it is no button of an incident, as one that opens a page."""
    action: Mapping[str, Any] = next(iter(payload.get("actions", ())), {})
    prefix, _, rest = str(action.get("block_id", "")).partition(":")
    incident, _, edition = rest.rpartition(":")
    if prefix != ACTIONS or action.get("action_id") not in {kind.value for kind in ActKind} or not incident:
        return None
    channel = str(payload.get("channel", {}).get("id", ""))
    return Click(incident, edition, action["action_id"], user_of(payload), channel, str(payload.get("trigger_id", "")))


def user_of(payload: Mapping[str, Any]) -> SlackUser:
    """Return the person of a payload; of a command it has other keys."""
    user = payload.get("user") or {"id": payload.get("user_id"), "name": payload.get("user_name")}
    return SlackUser(str(user.get("id") or ""), str(user.get("name") or user.get("username") or user.get("id") or ""))


def clicked(click: Click, now: datetime) -> Act:
    """Return the act of a click: the same for every delivery of it, and for a second click on the same rendering."""
    key = _key("click", click.incident, click.edition, click.action, click.user.id)
    return Act(key, click.incident, ActKind(click.action), click.user.name, VIA, now, account=click.user.id)


def form(click: Click, words: Words = ENGLISH) -> Mapping[str, Any]:
    """Return the form (a modal view) of a click on Silence or Resolve."""
    is_silence = click.action == ActKind.SILENCE.value
    blocks = [_why(words)]
    if is_silence:
        spans = [(span, words.sentence(span)) for span in SILENCE_SPANS]
        scopes = [(scope.value, words(text)) for scope, text in _SCOPES.items()]
        blocks = [
            _choice(_SPAN, words("For"), spans, USUAL_SPAN),
            _choice(_SCOPE, words("What"), scopes, SilenceScope.INCIDENT.value),
            _why(words),
        ]
    title, verb = map(words, _TITLES[is_silence])
    return {
        "type": "modal",
        "callback_id": click.action,
        "private_metadata": json.dumps({"incident": click.incident, "channel": click.channel}),
        "title": _plain(title),
        "submit": _plain(verb),
        "close": _plain(words("Cancel")),
        "blocks": blocks,
    }


def submitted(payload: Mapping[str, Any], now: datetime) -> Act | None:
    """Return the act of a `view_submission` payload; None when the form is not one of tocsin."""
    view = payload["view"]
    if view.get("callback_id") not in (ActKind.SILENCE.value, ActKind.RESOLVE.value):
        return None
    values = {name: next(iter(block.values())) for name, block in view["state"]["values"].items()}
    kind, user = ActKind(view["callback_id"]), user_of(payload)
    why = str(values.get(_WHY, {}).get("value") or "").strip()
    incident = str(json.loads(view["private_metadata"])["incident"])
    act = Act(_key("form", str(view["id"])), incident, kind, user.name, VIA, now, text=why[:MOST_TEXT], account=user.id)
    if kind is not ActKind.SILENCE:
        return act
    span = SILENCE_SPANS[str(values[_SPAN]["selected_option"]["value"])]
    scope = SilenceScope(values[_SCOPE]["selected_option"]["value"])
    return _silencing(act, now + span, scope)


def commanded(payload: Mapping[str, Any], incident: str, until: datetime, why: str, now: datetime) -> Act:
    """Return the act of `/tocsin silence`."""
    user, key = user_of(payload), _key("command", str(payload.get("trigger_id", "")), incident)
    act = Act(key, incident, ActKind.SILENCE, user.name, VIA, now, text=why[:MOST_TEXT], account=user.id)
    return _silencing(act, until, SilenceScope.INCIDENT)


def _silencing(act: Act, until: datetime, scope: SilenceScope) -> Act:
    return replace(act, until=until, scope=scope)


def _key(*parts: str) -> str:
    return f"slack/{sha256(chr(0).join(parts).encode('utf-8', 'replace')).hexdigest()[:32]}"


def _why(words: Words) -> SlackBlock:
    entry = {"type": "plain_text_input", "action_id": _WHY, "multiline": False, "max_length": 500}
    return {"type": "input", "block_id": _WHY, "optional": True, "label": _plain(words("Why")), "element": entry}


def _choice(name: str, label: str, options: list[tuple[str, str]], initial: str) -> SlackBlock:
    rows = [{"text": _plain(text), "value": value} for value, text in options]
    first = next(row for row in rows if row["value"] == initial)
    select = {"type": "static_select", "action_id": name, "options": rows, "initial_option": first}
    return {"type": "input", "block_id": name, "label": _plain(label), "element": select}


def _plain(text: str) -> SlackBlock:
    return {"type": "plain_text", "text": text}
