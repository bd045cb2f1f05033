"""What a picture of the cluster adds to a fix: values that the lines do not give, and what a step changes, as it is now."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from engine.model.blast import INTERNAL, SINK_GROUP, BlastRadius
from engine.model.expressions import MOST_REPLICAS, Environment, Result
from engine.model.incidents import RenderedStep
from engine.model.pictures import ClusterPicture, PicturedSetting
from engine.model.words import ENGLISH, Words, marked

MOST_PARTITIONS = 500  # in one reassignment
MOST_TOPICS = 10  # in a sentence
_SOURCES = dict(
    zip(
        ("topic", "dynamic", "static", "default"),
        marked(
            "{setting} is {value} set for the topic",
            "{setting} is {value} set for the brokers while they run",
            "{setting} is {value} set in the brokers' configuration",
            "{setting} is {value} by default",
        ),
        strict=True,
    )
)
_ENOUGH = frozenset(  # limits on sizes, which fixes raise: more does as well
    (
        "max.message.bytes",
        "message.max.bytes",
        "replica.fetch.max.bytes",
        "replica.fetch.response.max.bytes",
        "fetch.max.bytes",
    )
)
_CONFIGS, _REASSIGN = "kafka-configs.sh", "reassignment"


class WantedSetting(Struct, frozen=True):
    """A setting that a step changes: of a topic, or of the brokers when `topic` is empty."""

    topic: str
    name: str
    value: str


def known_values(environment: Environment, radius: BlastRadius | None, picture: ClusterPicture) -> dict[str, Result]:
    """Return the names and values that `picture` adds to `environment`: addresses, ids of brokers, the partitions with one
    replica that an outage touches, and what the subject of `radius` names itself."""
    values: dict[str, Result] = {}
    kind, _, name = radius.subject.partition(" ") if radius is not None else ("", "", "")
    if "bootstrap" not in environment and (servers := picture.bootstrap(without=name if kind == "broker" else "")):
        values["bootstrap"] = servers
    if picture.present and "brokers.all" not in environment:
        values["brokers"] = ",".join(picture.present)
    if radius is None:
        return values
    if radius.lone and _are_among(radius.lone.names, environment):
        values |= _lone(radius.lone.names, picture)
    return values | {label: value for label, value in _named(kind, name, picture).items() if label not in environment}


def choices_of(radius: BlastRadius | None, picture: ClusterPicture) -> Mapping[str, Sequence[str]]:
    """Return, by the name of a value that lines may not tell, what it can be, for steps alone: the topics and groups that the
    subject uses; without such a subject all topics of the cluster that are not its own, and all groups.

    A connector has no group but its own. Of connectors only a source has topics: what stops a sink need not be about a topic.
    """
    kind, _, name = radius.subject.partition(" ") if radius is not None else ("", "", "")
    if radius is not None and kind == "topic":
        return {"group": radius.groups.names}
    if radius is not None and kind == "group":
        return {"topic": radius.topics.names}
    if radius is not None and kind == "connector":
        return {"topic": radius.topics.names} if picture.connectors[name].type == "source" else {}
    topics = [topic for topic in picture.topics if not topic.startswith(INTERNAL)]
    return {"topic": topics, "group": list(picture.groups)}


def _named(kind: str, name: str, picture: ClusterPicture) -> Mapping[str, str]:
    """Return what a subject names: a topic, a group, and of a sink its group if it exists."""
    if kind == "connector":
        own = f"{SINK_GROUP}{name}"
        return {"group": own} if own in picture.groups else {}
    return {kind: name} if kind in ("topic", "group") else {}


def with_present_values(
    step: RenderedStep, topic: str, picture: ClusterPicture, at: datetime | None = None, words: Words = ENGLISH
) -> RenderedStep:
    """Return a step with the present values of the settings that it changes, marked as done if nothing is left to do.

    Args:
        topic: the topic of the incident; empty when it is not known.
        at: when the values were so; None when that is not known.
        words: those of the language of the step.
    """
    wanted = list(_wanted(step, topic))
    present = [(setting, _present(setting, picture)) for setting in wanted]
    spread = [_is_spread(text, picture) for name, text in step.file.items() if _REASSIGN in text or '"replicas"' in text]
    done = bool(present or spread) and all(spread) and all(now is not None and _suffices(s, now) for s, now in present)
    facts = [_fact(setting, now, words) for setting, now in present if now is not None]
    if spread and all(spread):
        facts.append(words("its partitions have these replicas"))
    if not facts:
        return step
    if at is not None:
        facts.append(words("as of {at}", at=f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"))
    do = f"{step.do} ({'; '.join(dict.fromkeys(facts))})"
    return replace(step, do=words("Done already: {do}", do=do) if done else do, is_done=done)


def _lone(names: Sequence[str], picture: ClusterPicture) -> dict[str, Result]:
    """Return the partitions that have one replica, as the rules name them."""
    names = names[:MOST_PARTITIONS]
    pairs = [(topic, number) for topic, _, number in (name.rpartition("-") for name in names)]
    topics = list(dict.fromkeys(topic for topic, _ in pairs))
    numbers: list[Result] = [int(number) for _, number in pairs]
    holders = [picture.topics[topic].partitions[int(number)].replicas[0] for topic, number in pairs]
    if len(topics) > 1 or len(picture.present) > MOST_REPLICAS or not set(holders) <= set(picture.present):
        numbers = [f"{name}@{holder}" for name, holder in zip(names, holders, strict=True)]
    return {
        "lone_topic": topics[0],
        "lone_topic.all": topics[:MOST_TOPICS],
        "lone_partition": numbers[0],
        "lone_partition.all": numbers,
    }


def _are_among(names: Sequence[str], environment: Environment) -> bool:
    """Return whether the topics and partitions with one replica that lines name are among `names`; true when they name none."""
    topics, numbers = ({name.rpartition("-")[place] for name in names} for place in (0, 2))
    of_lines = ({str(value) for value in _all(environment, name)} for name in ("lone_topic", "lone_partition"))
    return all(named <= pictured for named, pictured in zip(of_lines, (topics, numbers), strict=True))


def _all(environment: Environment, name: str) -> Sequence[Result]:
    """Return all values of `name`; none when it is not there."""
    values = environment.get(f"{name}.all", [environment[name]] if name in environment else [])
    return values if isinstance(values, list | tuple) else [values]


def _wanted(step: RenderedStep, topic: str) -> Iterator[WantedSetting]:
    """Yield the settings that a step changes, by its command or by its own words."""
    if step.where in ("topic", "broker"):
        of = topic if step.where == "topic" else ""
        if of or step.where == "broker":
            yield from (WantedSetting(of, name, value) for name, value in step.set.items())
    arguments = _arguments(step.run)
    if not arguments or not arguments[0].endswith(_CONFIGS) or "--add-config" not in arguments:
        return
    options = dict(pairwise(arguments))
    kind, name = options.get("--entity-type", ""), options.get("--entity-name", "")
    if kind not in ("topics", "brokers"):
        return
    for pair in options["--add-config"].split(","):
        setting, is_set, value = pair.partition("=")
        if is_set:
            yield WantedSetting(name if kind == "topics" else "", setting, value)


def _arguments(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _present(setting: WantedSetting, picture: ClusterPicture) -> PicturedSetting | None:
    if not setting.topic:
        return picture.broker_setting(setting.name)
    return picture.topic_setting(setting.topic, setting.name) if setting.topic in picture.topics else None


def _suffices(setting: WantedSetting, now: PicturedSetting) -> bool:
    if now.value == setting.value:
        return True
    is_number = now.value.isdigit() and setting.value.isdigit()
    return is_number and setting.name in _ENOUGH and int(now.value) >= int(setting.value)


def _fact(setting: WantedSetting, now: PicturedSetting, words: Words) -> str:
    if setting.topic:
        subject = words("{name} of {topic}", name=setting.name, topic=setting.topic)
    else:
        subject = words("{name} of the brokers", name=setting.name)
    return words(_SOURCES[now.source], setting=subject, value=now.value)


def _is_spread(text: str, picture: ClusterPicture) -> bool:
    """Return whether every partition of a reassignment has the replicas that it is to have, or more."""
    try:
        rows = json.loads(text)["partitions"]
        return all(
            set(map(str, row["replicas"])) <= set(picture.topics[row["topic"]].partitions[row["partition"]].replicas)
            for row in rows
        )
    except (ValueError, KeyError, TypeError):
        return False
