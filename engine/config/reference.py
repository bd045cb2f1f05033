"""Generate the tables of docs/configuration.md from the models: every key with meaning, default and example.

A generated part stands between `<!-- begin NAME -->` and `<!-- end -->`; `make accept` regenerates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engine.config.meanings import MEANINGS
from engine.config.schema import ConfigFile, SourceEntry, StoreEntry
from engine.dsl.codes import Code
from engine.dsl.json_schema import models
from engine.dsl.reference import code_table, with_parts
from engine.model.phrases import lasting

# place in tocsin.yml -> the model of its keys; routes below `route` have the keys of a route
SECTIONS: Mapping[str, str] = {
    "": "ConfigFile",
    "clusters.NAME": "ClusterEntry",
    "sources[] of type files": "FilesEntry",
    "sources[] of type docker": "DockerEntry",
    "sources[] of type kubernetes": "KubernetesEntry",
    "sources[] of type journald": "JournaldEntry",
    "sources[] of type kafka": "KafkaEntry",
    "sources[] of type elasticsearch": "ElasticsearchSourceEntry",
    "sources[] of type connect": "ConnectSourceEntry",
    "sources[] of type kafka-cluster": "ClusterSourceEntry",
    "sources[].stamps": "StampsEntry",
    "overrides.RULE": "OverrideEntry",
    "audit": "AuditEntry",
    "audit.ignore[]": "IgnoreEntry",
    "audit.digest": "AuditDigestEntry",
    "route": "RootEntry",
    "route.routes[], and their routes[]": "RouteEntry",
    "time_intervals[]": "IntervalEntry",
    "time_intervals[].time_intervals[]": "SpanEntry",
    "time_intervals[].time_intervals[].times[]": "TimesEntry",
    "receivers[]": "ReceiverEntry",
    "receivers[].slack": "SlackEntry",
    "receivers[].webhook": "WebhookEntry",
    "receivers[].elasticsearch": "ElasticsearchReceiverEntry",
    "receivers[].pagerduty": "PagerDutyEntry",
    "receivers[].alertmanager": "AlertmanagerEntry",
    "receivers[].email": "EmailEntry",
    "receivers[].teams": "TeamsEntry",
    "store": "StoreEntry",
    "redact": "RedactEntry",
    "spark": "SparkEntry",
    "web": "WebEntry",
    "web.auth": "AuthEntry",
    "web.auth.proxy": "ProxyEntry",
    "kibana": "KibanaEntry",
    "metrics": "MetricsSection",
    "heartbeat": "HeartbeatSection",
}
# keys that only branches can have
_NOT_OF_ROOT = ("matchers", "continue", "mute_time_intervals", "active_time_intervals")


def regenerated(text: str) -> str:
    """Return `text` with every generated part up to date. Raises KeyError for a part with an unknown name."""
    parts: Mapping[str, Callable[[], Iterator[str]]] = {
        "keys": _keys,
        "codes": lambda: code_table(code for code in Code if code.id >= "TOC7"),
    }
    return with_parts(text, lambda name: "\n".join(parts[name]()))


def _keys() -> Iterator[str]:
    by_name = models(ConfigFile)
    common = {key for key in SourceEntry.model_fields if key != "type"}
    for place, name in SECTIONS.items():
        shared = common if name.endswith("Entry") and place.startswith("sources[] of type") and name != "FilesEntry" else set()
        if place:
            yield from (f"### `{place.partition(' of ')[0].partition(',')[0]}`{_rest(place)}", "")
        if shared:
            yield from (f"As for files: {', '.join(f'`{key}`' for key in SourceEntry.model_fields if key in shared)}.", "")
        yield from ("| key | meaning | default | example |", "|---|---|---|---|")
        for key, field in _fields(by_name[name]):
            if key not in shared and not (name == "RootEntry" and key in _NOT_OF_ROOT):
                yield _row(name, key, field)
        yield ""


def _rest(place: str) -> str:
    return next((place[place.index(mark) :] for mark in (" of ", ",") if mark in place), "")


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _row(model: str, key: str, field: FieldInfo) -> str:
    meaning, example = MEANINGS[model][key]
    cells = (f"`{key}`", meaning, default_text(field), f"`{example}`")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def default_text(field: FieldInfo) -> str:
    """Return the default of a key as it would be written; `required` when there is none; empty when the meaning says what
    happens without the key."""
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is None or value in ([], {}, "") or (isinstance(value, BaseModel) and not isinstance(value, StoreEntry)):
        return ""
    if isinstance(value, StoreEntry):
        return f"`{value.url}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):  # all of them are durations, in seconds
        return f"`{lasting(timedelta(seconds=value)).replace(' ', '')}`"
    return f"`[{', '.join(value)}]`" if isinstance(value, list) else f"`{value}`"
