"""The acts of the lab. Each returns what was not as it should be, one sentence each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from engine.model.incidents import Incident
from engine.store import Store
from tests.lab.running import STORE, Tocsin, say, show, tocsin, told, write_config
from tests.rulepack.playing import SAMPLES, unlike
from tests.servers.broker import Broker, brokers
from tests.servers.shipping import make_topic, ship
from tests.standins.slack import SlackStandIn

DRAINED_WITHIN_S = 300
READING_WITHIN_S = 240
TOLD_WITHIN_S = 240
POLL_S = 0.5


def stories(jars: Path, folder: Path) -> list[str]:
    """Play the stories of the samples over a broker of their own."""
    say("starting a broker")
    with brokers(jars, folder) as (broker,):
        return play_stories(broker.address, folder)


def play_stories(address: str, folder: Path) -> list[str]:
    """Ship the logs of the samples into a topic for each story, let tocsin drain them, and compare with what they say."""
    with SlackStandIn() as slack:
        said = _over_kafka(address)
        for story, source in zip(stories_of(), said["sources"], strict=True):
            topic = source["topics"][0]
            make_topic(address, topic, partitions=2)
            say(f"{ship(address, topic, story)} lines of {story.name} are in the topic {topic}")
        config = write_config(folder, slack, said)
        say(f"tocsin run -c {config} --once")
        with tocsin("-c", config, "--once") as running:
            code = running.ended(DRAINED_WITHIN_S)
        show(slack)
        found = incidents_in(folder)
        wrong = [] if code == 1 else [f"tocsin ended with {code}, not with 1 (incidents told)"]
        return [*wrong, *unlike_samples(found, said["sources"]), *undelivered(found, slack)]


def dead_broker(jars: Path, folder: Path) -> list[str]:
    """Let tocsin read the live logs of three brokers, kill one with -9, and wait until Slack knows."""
    say("starting three brokers")
    with brokers(jars, folder, 3) as cluster, SlackStandIn() as slack:
        logs = [str(broker.log.relative_to(folder)) for broker in cluster]
        source = {"type": "files", "paths": logs, "labels": {"cluster": "lab"}, "start": "earliest"}
        clusters = {"lab": {"bootstrap": cluster[0].address, "brokers": [broker.id for broker in cluster]}}
        config = write_config(folder, slack, {"clusters": clusters, "sources": [source]})
        say(f"tocsin run -c {config}")
        with tocsin("-c", config) as running:
            if not running.reading(READING_WITHIN_S):
                return [f"tocsin read nothing within {READING_WITHIN_S} s"]
            if early := told(slack):
                return [f"told before anything had happened: {text}" for text in early.values()]
            return _killed(cluster[-1], running, folder, slack)


def _killed(victim: Broker, running: Tocsin, folder: Path, slack: SlackStandIn) -> list[str]:
    """Kill a broker; show what Slack says as it changes (it is fenced first), until it says that the broker is silent."""
    say(f"kill -9 {victim.pid}: broker {victim.id}")
    victim.kill()
    began, known = time.monotonic(), dict[str, str]()
    while (passed := time.monotonic() - began) < TOLD_WITHIN_S and running.alive:
        for id_, text in told(slack).items():
            if known.get(id_) != text:
                say(f"after {passed:.1f} s Slack says: {text}")
        known = told(slack)
        if any(
            _is_silence(incident, victim) and incident.title in known.get(incident.id, "") for incident in incidents_in(folder)
        ):
            show(slack)
            return []
        time.sleep(POLL_S)
    show(slack)
    return [f"nobody was told within {TOLD_WITHIN_S} s that broker {victim.id} is silent"]


def _is_silence(incident: Incident, broker: Broker) -> bool:
    return incident.rule == "broker-silent" and incident.labels["broker"] == str(broker.id)


def _sources() -> Sequence[Mapping[str, Any]]:
    return list(clusters_and_sources()["sources"])


def clusters_and_sources() -> dict[str, Any]:
    """Return samples/tocsin.yml."""
    found: dict[str, Any] = yaml.safe_load((SAMPLES / "tocsin.yml").read_text(encoding="utf-8"))
    return found


def stories_of() -> list[Path]:
    """Return the folders of the samples, as samples/tocsin.yml names them."""
    return [SAMPLES / source["paths"][0] for source in _sources()]


def _over_kafka(address: str) -> dict[str, Any]:
    """Return the clusters and sources of samples/tocsin.yml with a topic in the place of each folder."""
    sources = [
        {
            "type": "kafka",
            "bootstrap_servers": address,
            "topics": [f"logs.{source['paths'][0]}"],
            **{name: source[name] for name in ("labels", "timezone", "start")},
        }
        for source in _sources()
    ]
    return {"clusters": clusters_and_sources()["clusters"], "sources": sources}


def incidents_in(folder: Path) -> list[Incident]:
    """Return the incidents of the store that are findings of their own."""
    with closing(Store.open(f"sqlite:///{folder / STORE}")) as store:
        return [incident for incident in store.incidents() if incident.status not in ("merged", "retracted")]


def unlike_samples(found: Sequence[Incident], sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how the incidents of each cluster differ from what its sample says."""
    for story, source in zip(stories_of(), sources, strict=True):
        cluster = source["labels"]["cluster"]
        own = [incident for incident in found if incident.labels["cluster"] == cluster]
        yield from (f"{story.name}: {sentence}" for sentence in unlike(own, story))


def undelivered(found: Sequence[Incident], slack: SlackStandIn) -> list[str]:
    """Return how the messages of the channel differ from the incidents."""
    messages, ids = told(slack), {incident.id for incident in found}
    wrong = [f"Slack was not told of: {incident.title}" for incident in found if incident.id not in messages]
    wrong += [f"Slack was told of no incident: {text}" for id_, text in messages.items() if id_ not in ids]
    if len(slack.parents()) != len(messages):
        wrong.append(f"{len(slack.parents())} messages are about {len(messages)} incidents")
    return wrong
