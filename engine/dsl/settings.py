"""The settings that Kafka itself defines, by level, and where one of another name belongs.

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
# `where` of a step -> the levels whose settings may stand there; `os` and no place at all are not judged
LEVELS: Mapping[str, Sequence[str]] = {
    "broker": ("broker",),
    "controller": ("broker",),
    "cluster": ("broker",),
    "topic": ("topic",),
    "client": _CLIENT,
    "worker": ("worker",),
    "connector": ("connector",),
}
# level -> prefix -> the level of what follows it; None: whatever follows
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
# prefixes of settings of what is around Kafka
OTHERS = ("spring.", "schema.registry.", "confluent.", "quarkus.", "camel.", "mp.messaging.")

_ALIKE = {"kafka": 0.75, "plugin": 0.85}  # a plugin's own settings resemble those of Connect by chance
_SETTING = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)+")


@cache
def known() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return level -> name of a setting -> the first and the last of the versions above that have it."""
    found: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(DATA.read_text("utf-8"))
    return found


def is_setting(name: str, level: str) -> bool:
    """Say whether `level` has a setting `name`, by itself or behind one of the prefixes that it takes."""
    if name in known()[level]:
        return True
    for prefix, of in PREFIXES.get(level, {}).items():
        if name.startswith(prefix) and (of is None or is_setting(name.removeprefix(prefix), of)):
            return True
    return False


def misplaced(name: str, where: str) -> str | None:
    """Return None when `name` can be set at `where` (a place of a step) or is not Kafka's to judge, else what may be meant.

    Names in other shapes than Kafka's (environment variables, options in code) are not judged, nor, at a connector, those that
    resemble none of Connect's own: they are its plugin's.
    """
    levels = LEVELS.get(where, ())
    if not levels or not _SETTING.fullmatch(name) or name.startswith(OTHERS) or any(is_setting(name, each) for each in levels):
        return None
    near = get_close_matches(name, _spelled(levels), n=1, cutoff=_ALIKE["plugin" if where == "connector" else "kafka"])
    if where == "connector" and not near and not name.startswith(_judged(levels)):
        return None
    elsewhere = sorted(level for level in known() if name in known()[level])
    parts = [f"did you mean `{near[0]}`?"] if near else []
    parts += [f"`{name}` is a setting of: {', '.join(elsewhere)}"] if elsewhere else []
    return "; ".join(parts) or "take the name from the documentation of Kafka, or leave out `where`"


def _judged(levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(prefix for level in levels for prefix, of in PREFIXES.get(level, {}).items() if of is not None)


def _spelled(levels: Sequence[str]) -> list[str]:
    """Return every name that one of `levels` takes, those behind prefixes too."""
    names = [name for level in levels for name in known()[level]]
    for level in levels:
        for prefix, of in PREFIXES.get(level, {}).items():
            names.extend(prefix + name for name in (known()[of] if of else ()))
    return names
