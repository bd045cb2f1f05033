"""Configurations that Kafka's processes print when they start: `ProducerConfig values:` and below it `<tab>name = value` lines.

What a fix sets under a name is printed by the process under another: a worker's `producer.max.request.size` stands in the
ProducerConfig of its tasks as `max.request.size`. Source: org.apache.kafka.common.config.AbstractConfig.logAll, and the
configuration classes of Kafka 4.1 by their names.
"""

from __future__ import annotations

from engine.model.rules import Plan, Rule

Setting = tuple[str, str]  # the configuration class that is printed, and the name of the setting in it

BROKER = "KafkaConfig"
CLIENTS = ("ProducerConfig", "ConsumerConfig")
CLIENT_ID, GROUP_ID = "client.id", "group.id"  # by these a client's configuration says whose it is
_WORKERS = ("DistributedConfig", "StandaloneConfig")
_CONNECTORS = ("SourceConnectorConfig", "SinkConnectorConfig")
_OF_CLIENTS = {
    "worker": (("producer.", "ProducerConfig"), ("consumer.", "ConsumerConfig")),
    "connector": (("producer.override.", "ProducerConfig"), ("consumer.override.", "ConsumerConfig")),
}
_OWN = {"client": CLIENTS, "broker": (BROKER,), "controller": (BROKER,), "worker": _WORKERS, "connector": _CONNECTORS}


def printed_as(where: str, name: str) -> tuple[Setting, ...]:
    """Return under which names a process may print the setting `name` that a step of a fix changes at `where`."""
    for prefix, kind in _OF_CLIENTS.get(where, ()):
        if name.startswith(prefix):
            return ((kind, name.removeprefix(prefix)),)
    return tuple((kind, name) for kind in _OWN.get(where, ()))


def settings_of(rule: Rule) -> frozenset[Setting]:
    """Return every setting that the fix of `rule` changes, as it is printed."""
    return frozenset(each for step in rule.runbook.fix for name in step.set for each in printed_as(step.where, name))


def settings_of_plan(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the names to be read of each configuration that is printed: those that any fix changes."""
    rules = (*(each.rule for each in plan.signatures), *(each.rule for each in plan.correlations))
    found: dict[str, set[str]] = {}
    for kind, name in sorted({setting for rule in rules for setting in settings_of(rule)}):
        found.setdefault(kind, set()).add(name)
    return {kind: frozenset(names) for kind, names in found.items()}
