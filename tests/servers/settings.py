"""The names of all settings that Kafka defines, read by Java from Kafka's own jars: writes engine/dsl/settings.json.

Run it with `python -m tests.servers.settings`, after adding a version to VERSIONS. Settings.java does the reading.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.servers.jars import jars

DATA = Path(__file__).parents[2] / "engine" / "dsl" / "settings.json"
PROGRAM = Path(__file__).parent / "Settings.java"
VERSIONS = {"2.0.1": "2.12", "2.8.2": "2.13", "3.9.1": "2.13", "4.3.1": "2.13"}  # oldest first, with the Scala of its broker
WITHIN_S = 300

# level: classes that define its settings in one version or another
CLASSES = {
    "broker": (
        "kafka.server.KafkaConfig",
        "kafka.server.KafkaConfig$",
        "kafka.server.DynamicConfig$Broker$",
        "org.apache.kafka.server.config.AbstractKafkaConfig",
        "org.apache.kafka.server.config.DynamicConfig$Broker",
    ),
    "topic": ("kafka.log.LogConfig$", "org.apache.kafka.storage.internals.log.LogConfig"),
    "producer": ("org.apache.kafka.clients.producer.ProducerConfig",),
    "consumer": ("org.apache.kafka.clients.consumer.ConsumerConfig",),
    "admin": ("org.apache.kafka.clients.admin.AdminClientConfig",),
    "streams": ("org.apache.kafka.streams.StreamsConfig",),
    "worker": (
        "org.apache.kafka.connect.runtime.distributed.DistributedConfig",
        "org.apache.kafka.connect.runtime.standalone.StandaloneConfig",
    ),
    "connector": (
        "org.apache.kafka.connect.runtime.ConnectorConfig",
        "org.apache.kafka.connect.runtime.SourceConnectorConfig",
        "org.apache.kafka.connect.runtime.SinkConnectorConfig",
    ),
}


def settings_of(version: str) -> Mapping[str, frozenset[str]]:
    """Return the names of the settings of each level in Kafka `version`, a key of VERSIONS. Raises NoJars."""
    names = (f"kafka_{VERSIONS[version]}", "connect-runtime", "kafka-streams")
    folder = jars(f"kafka-all-{version}", [("org.apache.kafka", name, version) for name in names])
    arguments = [f"{level}={name}" for level, classes in CLASSES.items() for name in classes]
    command = ["java", "-cp", f"{folder}/*", str(PROGRAM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=True)
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return {level: frozenset(name for of, name in rows if of == level) for level in CLASSES}


def gathered(found: Mapping[str, Mapping[str, frozenset[str]]]) -> Mapping[str, Mapping[str, list[str]]]:
    """Return level -> name -> the first and last version that has it, from version -> level -> names, oldest first."""
    levels: dict[str, dict[str, list[str]]] = {level: {} for level in CLASSES}
    for version, settings in found.items():
        for level, names in settings.items():
            for name in names:
                levels[level].setdefault(name, [version, version])[1] = version
    return {level: dict(sorted(names.items())) for level, names in levels.items()}


def as_text(levels: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Return the content of the data file: one line a setting, so that a new version is a short diff."""
    blocks = []
    for level, names in levels.items():
        rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(span)}" for name, span in names.items())
        blocks.append(f"  {json.dumps(level)}: {{\n{rows}\n  }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    DATA.write_text(as_text(gathered({version: settings_of(version) for version in VERSIONS})), encoding="utf-8")
