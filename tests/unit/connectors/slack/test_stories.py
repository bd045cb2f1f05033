"""The messages of the sample stories and their threads, listed for review: tests/golden/slack_messages.txt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from re import compile as pattern
from typing import Any

import pytest
from msgspec.structs import replace

from connectors.slack import breaches, change, details, parent
from connectors.slack.limits import MOST_SHOWN, MOST_SHOWN_BLOCKS, shown_characters
from connectors.slack.message import Message
from engine.cli.authoring.slack_preview import slack_text
from engine.language import words_of
from engine.model.incidents import Incident
from engine.model.links import Link
from engine.model.notifications import Notification, Reason
from engine.model.prose import localised, prose_of
from tests.rulepack.playing import STORIES, plan, play, story
from tests.unit.connectors.slack.test_thread import everything, squeezed, texts

pytestmark = pytest.mark.slow

HANGUL = pattern("[가-힣]")
LINKS = (Link("incident", "https://tocsin.example/incidents/1"), Link("kibana", "https://kibana.example/app/discover#/1"))


@cache
def incidents() -> tuple[tuple[Path, Incident], ...]:
    """Return the nine incidents of the stories, in order."""
    return tuple((folder, incident) for folder in STORIES for incident in play(story(folder)))


def test_the_messages_are_as_listed(golden: Callable[[str, str], None]) -> None:
    parts = [part for folder, incident in incidents() for part in (f"======== {folder.name}", slack_text(incident, LINKS), "")]
    golden("slack_messages.txt", "\n".join(parts))


def test_each_is_short_and_loses_nothing() -> None:
    assert len(incidents()) == 9
    for _, incident in incidents():
        message = parent(incident, LINKS)
        blocks = [*message.blocks, *message.barred]
        assert len(blocks) <= MOST_SHOWN_BLOCKS
        assert shown_characters(blocks) <= MOST_SHOWN
        assert [sentence for each in _messages(incident) for sentence in breaches(**each.payload())] == []
        shown_text = everything(incident)
        repeated = {line for event in incident.evidence for line in event.text.split("\n")[1:]}
        assert [text for text in texts(incident) if squeezed(text) not in shown_text and text not in repeated] == []


def test_in_korean_each_is_as_short_and_says_all_of_it_in_korean() -> None:
    words = words_of("ko")
    assert len(korean()) == 9
    for incident in korean():
        notification = localised(Notification(incident, Reason.OPENED, "severity is high now, was low"), words)
        message = parent(notification.incident, LINKS, has_buttons=True, words=words)
        blocks = [*message.blocks, *message.barred]
        assert len(blocks) <= MOST_SHOWN_BLOCKS
        assert shown_characters(blocks) <= MOST_SHOWN
        thread = details(notification.incident, words=words)
        assert [sentence for each in (message, *thread) for sentence in breaches(**each.payload())] == []
        assert [text for text in prose_of(notification.incident) if text and not HANGUL.search(text)] == []
        pieces = [text for block in (*blocks, *(b for page in thread for b in page.blocks)) for text in strings(block)]
        assert [text for text in pieces if text.strip() in words.texts and text.strip() not in words.texts.values()] == []
        news = change(notification)
        assert news is not None and news.text == "심각도 변경: 낮음 → 높음"


def test_a_rule_without_korean_is_told_in_english_within_korean_words() -> None:
    (incident, *_) = [incident for _, incident in incidents() if incident.rule == "broker-silent"]
    notification = localised(Notification(incident, Reason.OPENED), words_of("ko"))
    message = parent(notification.incident, words=notification.words)
    assert message.text == "심각: Broker 1 went silent: cluster=story-4 broker=1"


def test_an_incident_has_no_other_language_unless_a_receiver_asks_for_it() -> None:
    assert {language for _, incident in incidents() for language in incident.translations} == set()


@cache
def korean() -> tuple[Incident, ...]:
    """Return the nine incidents as a job composes them that has a receiver with `language: ko`."""
    in_korean = replace(plan(), languages=("ko",))
    return tuple(incident for folder in STORIES for incident in play(story(folder), of=in_korean))


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a block."""
    if isinstance(value, dict):
        yield from filter(None, [value["text"] if isinstance(value.get("text"), str) else None])
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def _messages(incident: Incident) -> Iterator[Message]:
    yield parent(incident, LINKS)
    yield from details(incident)
