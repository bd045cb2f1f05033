"""Settings that Kafka has, and those that it has not."""

from __future__ import annotations

import pytest

from engine.dsl.settings import LEVELS, PREFIXES, help_for_unknown, is_setting, settings_by_level
from tests.servers.settings import CLASSES, as_text, gathered


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("min.insync.replicas", "broker"),
        ("min.insync.replicas", "topic"),
        ("zookeeper.connect", "broker"),  # until 3.9
        ("controller.quorum.bootstrap.servers", "controller"),  # since 3.9
        ("listener.name.internal.sasl.jaas.config", "broker"),
        ("max.poll.interval.ms", "client"),
        ("linger.ms", "client"),
        ("num.standby.replicas", "client"),
        ("restore.consumer.max.poll.records", "client"),
        ("producer.max.request.size", "worker"),
        ("offset.storage.cleanup.policy", "worker"),
        ("consumer.override.max.poll.records", "connector"),
        ("errors.deadletterqueue.topic.name", "connector"),
    ],
)
def test_a_real_setting_is_in_its_place(name: str, where: str) -> None:
    assert help_for_unknown(name, where) is None


@pytest.mark.parametrize(
    ("name", "where", "help"),
    [
        ("max.message.bytes", "broker", "did you mean `message.max.bytes`?; `max.message.bytes` is a setting of: topic"),
        ("producer.override.linger.msec", "connector", "did you mean `producer.override.linger.ms`?"),
        ("errors.tolerence", "connector", "did you mean `errors.tolerance`?"),
        ("made.up", "topic", "take the name from the documentation of Kafka, or leave out `where`"),
    ],
)
def test_another_name_gets_the_nearest_or_its_real_place(name: str, where: str, help: str) -> None:
    assert help_for_unknown(name, where) == help


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("snapshot.mode", "connector"),  # a plugin's own
        ("spring.kafka.listener.missing-topics-fatal", "client"),
        ("KAFKA_HEAP_OPTS", "broker"),
        ("commonErrorHandler", "client"),
        ("vm.max_map_count", "os"),
        ("anything.at.all", ""),
    ],
)
def test_what_is_not_kafkas_is_not_judged(name: str, where: str) -> None:
    assert help_for_unknown(name, where) is None


def test_every_level_that_is_named_is_known() -> None:
    named = {level for levels in LEVELS.values() for level in levels} | {*PREFIXES}
    named |= {of for prefixes in PREFIXES.values() for of in prefixes.values() if of}
    assert named <= {*settings_by_level()} == {*CLASSES}


def test_settings_of_several_versions_keep_the_first_and_the_last() -> None:
    both = {"1": {"topic": frozenset("ab")}, "2": {"topic": frozenset("ac")}}
    assert gathered(both)["topic"] == {"a": ["1", "2"], "b": ["1", "1"], "c": ["2", "2"]}


def test_the_data_file_is_as_the_script_writes_it() -> None:
    from engine.dsl.settings import DATA

    assert DATA.read_text("utf-8") == as_text(
        {level: {n: [*v] for n, v in names.items()} for level, names in settings_by_level().items()}
    )


def test_a_prefix_opens_a_level_and_not_more() -> None:
    assert is_setting("producer.linger.ms", "worker")
    assert not is_setting("producer.fetch.min.bytes", "worker")
