"""The command /tocsin: what is open, one incident, a silence. The answer is for its user alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from connectors.slack.blocks import paragraph, time, word
from connectors.slack.interaction import commanded
from connectors.slack.limits import SlackBlock, cut
from connectors.slack.message import escaped, parent
from engine.errors import UnknownIncident
from engine.model.acts import ActOutcome
from engine.model.incidents import Incident
from engine.model.outlines import headline
from engine.model.phrases import named
from engine.model.visible import visible
from engine.ports import ActDesk

MOST_LISTED, MOST_IN_LINE = 20, 200
HELP = "/tocsin open · /tocsin show ID · /tocsin silence ID 2h [why]"
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=365)


class Command(Struct, frozen=True):
    """A command as Slack sends it, and when it came."""

    payload: Mapping[str, Any]
    now: datetime


def answer_command(command: Command, desk: ActDesk) -> Mapping[str, Any]:
    """Do what a command asks for and return the message for its user. Raises StoreError."""
    verb, _, rest = str(command.payload.get("text", "")).strip().partition(" ")
    try:
        if verb in ("open", ""):
            return _open(desk)
        if verb == "show" and rest.strip():
            return _message(parent(desk.find(rest.strip())).payload())
        if verb == "silence" and rest.strip():
            return _silence(command, rest.split(), desk)
    except UnknownIncident as error:
        return _text(str(error).partition(";")[0])
    return _text(HELP)


def _open(desk: ActDesk) -> Mapping[str, Any]:
    incidents, total = desk.going_on(MOST_LISTED)
    if not total:
        return _text("Nothing is open.")
    more = [paragraph([word(f"and {total - len(incidents):,} more")])] if total > len(incidents) else []
    return _message({"text": f"{total:,} open", "blocks": [*map(_line, incidents), *more]})


def _line(incident: Incident) -> SlackBlock:
    where = named(incident.labels)
    owner = f", {incident.owner} has it" if incident.owner else ""
    text = cut(visible(f"{headline(incident)}{f' ({where})' if where else ''}{owner}"), MOST_IN_LINE)
    since = [word(" since "), time(incident.first_seen)] if incident.first_seen is not None else []
    return paragraph([word(f"{incident.id}  ", bold=True), word(text), *since])


def _silence(command: Command, words: list[str], desk: ActDesk) -> Mapping[str, Any]:
    span = _span(words[1]) if len(words) > 1 else None
    if span is None:
        return _text("For how long? Write for example: /tocsin silence 1a8a 2h moving brokers")
    incident = desk.find(words[0])
    act = commanded(command.payload, incident.id, command.now + span, " ".join(words[2:]), command.now)
    answer = desk.record(act)
    if answer.decision.outcome is not ActOutcome.DONE:
        return _text(f"Nothing was changed: {answer.decision.sentence}")
    return _text(f"{incident.id} is {answer.decision.sentence}")


def _span(text: str) -> timedelta | None:
    """Return a duration such as 30m, 2h or 3d; None when it is none, or longer than a year."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", text)
    span = timedelta(seconds=int(match[1]) * _UNITS[match[2]]) if match else None
    return None if span is None or span > _LONGEST else span


def _text(text: str) -> Mapping[str, Any]:
    return _message({"text": escaped(visible(text))})


def _message(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"response_type": "ephemeral", **content}
