"""Configurations that Kafka's processes print when they start: `ProducerConfig values:` and below it `<tab>name = value` lines.

The name of a setting in a fix may differ from the printed one: a worker's `producer.max.request.size` is printed as
`max.request.size` in the ProducerConfig of its tasks. Source: org.apache.kafka.common.config.AbstractConfig.logAll, and the
configuration classes of Kafka 4.1 by their names.
"""

from __future__ import annotations

from engine.model.rules import Plan, Rule

Setting = tuple[str, str]  # the printed configuration class, and the name of the setting in it

BROKER = "KafkaConfig"
CLIENTS = ("ProducerConfig", "ConsumerConfig")
CLIENT_ID, GROUP_ID = "client.id", "group.id"  # these settings identify the client of a configuration
_WORKERS = ("DistributedConfig", "StandaloneConfig")
_CONNECTORS = ("SourceConnectorConfig", "SinkConnectorConfig")
_OF_CLIENTS = {
    "worker": (("producer.", "ProducerConfig"), ("consumer.", "ConsumerConfig")),
    "connector": (("producer.override.", "ProducerConfig"), ("consumer.override.", "ConsumerConfig")),
}
_OWN = {"client": CLIENTS, "broker": (BROKER,), "controller": (BROKER,), "worker": _WORKERS, "connector": _CONNECTORS}


def printed_as(where: str, name: str) -> tuple[Setting, ...]:
    """Return the names under which a process may print the setting `name` that a fix changes at `where`."""
    for prefix, kind in _OF_CLIENTS.get(where, ()):
        if name.startswith(prefix):
            return ((kind, name.removeprefix(prefix)),)
    return tuple((kind, name) for kind in _OWN.get(where, ()))


def settings_of(rule: Rule) -> frozenset[Setting]:
    """Return every setting that the fix of `rule` changes, under its printed names."""
    return frozenset(setting for step in rule.runbook.fix for name in step.set for setting in printed_as(step.where, name))


def settings_of_plan(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the settings that any fix of `plan` changes, by printed configuration class."""
    rules = (*(signature.rule for signature in plan.signatures), *(correlation.rule for correlation in plan.correlations))
    names_by_class: dict[str, set[str]] = {}
    for kind, name in sorted({setting for rule in rules for setting in settings_of(rule)}):
        names_by_class.setdefault(kind, set()).add(name)
    return {kind: frozenset(names) for kind, names in names_by_class.items()}
