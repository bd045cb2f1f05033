"""The indices of incidents: their mappings, and the requests that create them. Pure.

Mappings use core field types only, which every version and distribution has. Other fields are stored and not indexed, so no
document is rejected for a field that a later version adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

VERSION = 1  # of the mappings; those of an earlier version are updated
PRIORITY = 300  # above those of the templates that clusters come with
VERSION_KEY = "tocsin"  # the key of `_meta` that marks an index as ours

_KEYWORD: Mapping[str, Any] = {"type": "keyword", "ignore_above": 1024}
_TEXT: Mapping[str, Any] = {"type": "text"}
_BOTH: Mapping[str, Any] = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 1024}}}
_DATE: Mapping[str, Any] = {"type": "date"}
_LONG: Mapping[str, Any] = {"type": "long"}


def index_body() -> dict[str, Any]:
    """Return the settings and mappings of both indices: one shard, with a replica if there is a second node."""
    return {"settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1"}, "mappings": mappings()}


def index_template(names: Sequence[str]) -> dict[str, Any]:
    """Return the index template for the indices `names`: they get our mappings however they are created."""
    description = "Incidents that tocsin found in logs; written by its elasticsearch receiver."
    meta = {VERSION_KEY: VERSION, "description": description}
    return {"index_patterns": list(names), "priority": PRIORITY, "version": VERSION, "template": index_body(), "_meta": meta}


def mappings() -> dict[str, Any]:
    """Return the mappings of both indices."""
    return {
        "_meta": {VERSION_KEY: VERSION},
        "dynamic": False,
        "dynamic_templates": [{"labels": {"path_match": "labels.*", "mapping": _KEYWORD}}],
        "properties": {
            "@timestamp": _DATE,
            "ecs": _object(version=_KEYWORD),
            "message": _TEXT,
            "tags": _KEYWORD,
            "labels": {"type": "object", "dynamic": True},
            "event": _object(
                id=_KEYWORD,
                kind=_KEYWORD,
                provider=_KEYWORD,
                module=_KEYWORD,
                dataset=_KEYWORD,
                action=_KEYWORD,
                type=_KEYWORD,
                severity=_LONG,
                sequence=_LONG,
                reason=_BOTH,
                url=_KEYWORD,
                start=_DATE,
                end=_DATE,
                duration=_LONG,
                ingested=_DATE,
            ),
            "rule": _object(
                id=_KEYWORD, name=_BOTH, category=_KEYWORD, ruleset=_KEYWORD, description=_TEXT, reference=_KEYWORD
            ),
            "host": _object(name=_KEYWORD),
            "service": _object(name=_KEYWORD),
            "container": _object(name=_KEYWORD),
            "orchestrator": _object(namespace=_KEYWORD, resource=_object(name=_KEYWORD)),
            "kafka": _object(
                cluster=_object(name=_KEYWORD),
                broker=_object(id=_KEYWORD),
                topic=_object(name=_KEYWORD),
                partition=_object(id=_KEYWORD),
                consumergroup=_object(id=_KEYWORD),
                connect=_object(connector=_KEYWORD, task=_KEYWORD, worker=_KEYWORD),
            ),
            "tocsin": _object(incident=_incident()),
        },
    }


def _incident() -> dict[str, Any]:
    return _object(
        id=_KEYWORD,
        revision=_LONG,
        status=_KEYWORD,
        is_open={"type": "boolean"},
        severity=_KEYWORD,
        title=_BOTH,
        component=_KEYWORD,
        scope=_KEYWORD,
        count=_LONG,
        stage=_KEYWORD,
        merged_into=_KEYWORD,
        cause=_TEXT,
        impact=_TEXT,
        fix=_TEXT,
        verify=_TEXT,
        evidence=_object(source=_KEYWORD, line=_LONG, at=_DATE, text=_TEXT, origin=_KEYWORD),
        symptoms=_object(rule=_KEYWORD, title=_BOTH, count=_LONG),
        symptom_count=_LONG,
        captures={"type": "object", "enabled": False},
        also_possible=_KEYWORD,
        next_checks=_TEXT,
        links=_object(incident=_KEYWORD, kibana=_KEYWORD),
    )


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"properties": properties}
