"""Each sample story gives the incidents that it says, and no other; logs of healthy systems give none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rulepack.playing import GOODLOGS, STORIES, Story, play, story, unlike

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_a_story_raises_exactly_what_it_should(folder: Path) -> None:
    found = play(story(folder))
    assert unlike(found, folder) == []
    assert not any(incident.pending for incident in found)


@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_the_order_of_files_makes_no_difference(folder: Path) -> None:
    told = story(folder)
    assert _told(told.backwards()) == _told(told)


@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_every_story_is_told(folder: Path) -> None:
    assert (folder / "story.md").read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("folder", GOODLOGS, ids=lambda folder: folder.name)
def test_a_healthy_system_raises_nothing_and_leaves_nothing_pending(folder: Path) -> None:
    assert [(incident.rule, incident.title) for incident in play(story(folder))] == []


def test_all_healthy_logs_at_once_raise_nothing() -> None:
    assert [(incident.rule, incident.title) for incident in play(story(GOODLOGS[0].parent))] == []


def _told(told: Story) -> list[tuple[object, ...]]:
    incidents = play(told)
    return sorted((i.id, i.rule, i.severity, i.status, i.count, i.first_seen, i.last_seen, len(i.symptoms)) for i in incidents)
