"""The settings that Kafka itself defines, by level, and suggestions for a name that is not one of them.

The names come from the ConfigDef of Kafka 2.0.1, 2.8.2, 3.9.1 and 4.3.1 (settings.json, written by tests/servers/settings.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("settings.json")

_CLIENT = ("producer", "consumer", "admin", "streams")
# `where` of a step -> the levels whose settings apply there; `os` and an empty `where` are not checked
LEVELS: Mapping[str, Sequence[str]] = {
    "broker": ("broker",),
    "controller": ("broker",),
    "cluster": ("broker",),
    "topic": ("topic",),
    "client": _CLIENT,
    "worker": ("worker",),
    "connector": ("connector",),
}
PLUGIN_LEVEL = "connector"  # where settings of plugins stand beside Kafka's own
# level -> prefix -> the level of the rest of the name; None: any name
PREFIXES: Mapping[str, Mapping[str, str | None]] = {
    "broker": {"listener.name.": None},
    "worker": {
        "producer.": "producer",
        "consumer.": "consumer",
        "admin.": "admin",
        **dict.fromkeys(("config.storage.", "offset.storage.", "status.storage."), "topic"),
        **dict.fromkeys(("key.converter.", "value.converter.", "header.converter.", "config.providers."), None),
        **dict.fromkeys(("listeners.https.", "admin.listeners.https."), None),
    },
    "connector": {
        "producer.override.": "producer",
        "consumer.override.": "consumer",
        "admin.override.": "admin",
        **dict.fromkeys(("key.converter.", "value.converter.", "transforms.", "predicates."), None),
    },
    "streams": {
        "producer.": "producer",
        "admin.": "admin",
        "topic.": "topic",
        **dict.fromkeys(("consumer.", "main.consumer.", "restore.consumer.", "global.consumer."), "consumer"),
    },
}
# prefixes of settings of other products around Kafka
OTHERS = ("spring.", "schema.registry.", "basic.auth.", "confluent.", "quarkus.", "camel.", "mp.messaging.", "cruise.control.")

_ALIKE = {"kafka": 0.75, "plugin": 0.85}  # similarity; a plugin's own settings resemble those of Connect by chance
_SETTING = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)+")


@cache
def settings_by_level() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return level -> setting name -> the first and the last of the versions above that have it."""
    settings: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(DATA.read_text("utf-8"))
    return settings


def is_setting(name: str, level: str) -> bool:
    """Return whether `level` has a setting `name`, bare or behind one of the prefixes of the level."""
    if name in settings_by_level()[level]:
        return True
    for prefix, of in PREFIXES.get(level, {}).items():
        if name.startswith(prefix) and (of is None or is_setting(name.removeprefix(prefix), of)):
            return True
    return False


def is_of_plugin(name: str) -> bool:
    """Return whether `name` may be a setting that a connector defines for itself, such as Debezium's `snapshot.mode`."""
    levels = LEVELS[PLUGIN_LEVEL]
    similar = get_close_matches(name, _all_names(levels), n=1, cutoff=_ALIKE["plugin"])
    return not similar and not name.startswith(_judged_prefixes(levels))


def help_for_unknown(name: str, where: str) -> str | None:
    """Return a help line when Kafka has no setting `name` at `where` (of a step); None when it has, or cannot be checked.

    Not checked are names in other shapes than Kafka's (environment variables, options in code), and at a connector those that
    do not resemble Connect's own, as they belong to its plugin.
    """
    levels = LEVELS.get(where, ())
    if not levels or not _SETTING.fullmatch(name) or name.startswith(OTHERS):
        return None
    if any(is_setting(name, level) for level in levels):
        return None
    if where == PLUGIN_LEVEL and is_of_plugin(name):
        return None
    cutoff = _ALIKE["plugin" if where == PLUGIN_LEVEL else "kafka"]
    similar = get_close_matches(name, _all_names(levels), n=1, cutoff=cutoff)
    elsewhere = sorted(level for level in settings_by_level() if name in settings_by_level()[level])
    parts = [f"did you mean `{similar[0]}`?"] if similar else []
    parts += [f"`{name}` is a setting of: {', '.join(elsewhere)}"] if elsewhere else []
    return "; ".join(parts) or "take the name from the documentation of Kafka, or leave out `where`"


def _judged_prefixes(levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(prefix for level in levels for prefix, of in PREFIXES.get(level, {}).items() if of is not None)


def _all_names(levels: Sequence[str]) -> list[str]:
    """Return every setting name of `levels`, those behind prefixes included."""
    names = [name for level in levels for name in settings_by_level()[level]]
    for level in levels:
        for prefix, of in PREFIXES.get(level, {}).items():
            names.extend(prefix + name for name in (settings_by_level()[of] if of else ()))
    return names
