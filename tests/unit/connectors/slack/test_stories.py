"""The messages of the sample stories and their threads, listed for review: tests/golden/slack_messages.txt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from connectors.slack import breaches, details, parent
from connectors.slack.limits import MOST_SHOWN, MOST_SHOWN_BLOCKS, shown_characters
from connectors.slack.message import Message
from engine.cli.authoring.slack_preview import slack_text
from engine.model.incidents import Incident
from engine.model.links import Link
from tests.rulepack.playing import STORIES, play, story
from tests.unit.connectors.slack.test_thread import everything, squeezed, texts

pytestmark = pytest.mark.slow

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


def _messages(incident: Incident) -> Iterator[Message]:
    yield parent(incident, LINKS)
    yield from details(incident)
