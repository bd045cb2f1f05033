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
from engine.model.notifications import Notification, Reason
from engine.model.outlines import headline
from engine.model.phrases import named
from engine.model.prose import localised
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked
from engine.ports import ActDesk

MOST_LISTED, MOST_IN_LINE = 20, 200
(HELP,) = marked("/tocsin open · /tocsin show ID · /tocsin silence ID 2h [why]")
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=365)


class Command(Struct, frozen=True):
    """A command as Slack sends it, and when it came."""

    payload: Mapping[str, Any]
    now: datetime


def answer_command(command: Command, desk: ActDesk, words: Words = ENGLISH) -> Mapping[str, Any]:
    """Do what a command asks for and return the message for its user. Raises StoreError."""
    verb, _, rest = str(command.payload.get("text", "")).strip().partition(" ")
    try:
        if verb in ("open", ""):
            return _open(desk, words)
        if verb == "show" and rest.strip():
            return _message(parent(_in_language(desk.find(rest.strip()), words), words=words).payload())
        if verb == "silence" and rest.strip():
            return _silence(command, rest.split(), desk, words)
    except UnknownIncident as error:
        return _text(words.sentence(str(error).partition(";")[0]))
    return _text(words(HELP))


def _open(desk: ActDesk, words: Words) -> Mapping[str, Any]:
    incidents, total = desk.going_on(MOST_LISTED)
    if not total:
        return _text(words("Nothing is open."))
    more = [paragraph([word(words("and {number:,} more", number=total - len(incidents)))])] if total > len(incidents) else []
    return _message({"text": words("{number:,} open", number=total), "blocks": [*(_line(x, words) for x in incidents), *more]})


def _line(incident: Incident, words: Words) -> SlackBlock:
    where = named(incident.labels)
    owner = f", {words('{person} has it', person=incident.owner)}" if incident.owner else ""
    title = headline(_in_language(incident, words), words)
    text = cut(visible(f"{title}{f' ({where})' if where else ''}{owner}"), MOST_IN_LINE)
    since = [word(words(" since ")), time(incident.first_seen, words)] if incident.first_seen is not None else []
    return paragraph([word(f"{incident.id}  ", bold=True), word(text), *since])


def _silence(command: Command, arguments: list[str], desk: ActDesk, words: Words) -> Mapping[str, Any]:
    span = _span(arguments[1]) if len(arguments) > 1 else None
    if span is None:
        return _text(words("For how long? Write for example: /tocsin silence 1a8a 2h moving brokers"))
    incident = desk.find(arguments[0])
    act = commanded(command.payload, incident.id, command.now + span, " ".join(arguments[2:]), command.now)
    answer = desk.record(act)
    if answer.decision.outcome is not ActOutcome.DONE:
        return _text(words("Nothing was changed: {why}", why=words.sentence(answer.decision.sentence)))
    return _text(words("{id} is {what}", id=incident.id, what=words.sentence(answer.decision.sentence)))


def _span(text: str) -> timedelta | None:
    """Return a duration such as 30m, 2h or 3d; None when it is none, or longer than a year."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", text)
    span = timedelta(seconds=int(match[1]) * _UNITS[match[2]]) if match else None
    return None if span is None or span > _LONGEST else span


def _in_language(incident: Incident, words: Words) -> Incident:
    return localised(Notification(incident, Reason.OPENED), words).incident


def _text(text: str) -> Mapping[str, Any]:
    return _message({"text": escaped(visible(text))})


def _message(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"response_type": "ephemeral", **content}
