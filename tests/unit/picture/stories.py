"""Incidents of the stories, for the tests of their pictures."""

from __future__ import annotations

from functools import cache

from engine.model.incidents import Incident
from tests.rulepack.playing import STORIES, play, story

SILENT = next(path for path in STORIES if path.name == "4-silent-broker")
# what broker 1 prints when it is started again
BACK = """\
[2022-10-05 19:21:03,118] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jControllerRegistration$)
[2022-10-05 19:21:04,404] INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)
[2022-10-05 19:21:09,712] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)
"""


@cache
def incidents(name: str) -> tuple[Incident, ...]:
    """Return the incidents of a story by the beginning of its folder's name, those with times, by rule and first time."""
    folder = next(path for path in STORIES if path.name.startswith(name))
    dated = [incident for incident in play(story(folder)) if incident.first_seen is not None]
    return tuple(sorted(dated, key=lambda incident: (incident.rule, str(incident.first_seen))))


@cache
def restarted() -> Incident:
    """Return the incident of the silent broker after its restart."""
    (incident,) = play(story(SILENT).with_log("broker-1/server.log", BACK))
    return incident
