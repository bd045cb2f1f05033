"""Queries that filter logs by an incident or by one of its lines, in the query languages of Kibana. Pure.

They compare fields that have the captured values, and never search free text. A line that came from Elasticsearch is a document
by itself and needs no query (engine/model/origins).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from engine.model.incidents import Evidence, Incident
from engine.model.origins import origin_path

# what a line's source names: the field that shippers put it into
LINE_FIELDS = {"file": "log.file.path", "container": "container.name", "unit": "systemd.unit", "host": "host.name"}
MOST_SOURCES = 3  # that an incident is narrowed to; more of them say little

Conditions = tuple[tuple[str, str], ...]  # (field, value): all of them hold
Narrowing = tuple[Conditions, ...]  # one of these holds; empty: everything

_SHIPPED = re.compile(r"[^/]+/(?P<host>[^/:]+):(?P<file>.+)", re.DOTALL)
_DOCKER = re.compile(
    r"docker/(?P<container>.+?)\.log(?:\.\d{1,3})?(?:\.gz)?(?:~\d+)?", re.DOTALL
)  # connectors/files/containers
_UNIT = re.compile(
    r"journald/[^/:]+:.+\.(?:service|scope|slice|socket|mount|timer|target|swap|path|device|automount)", re.DOTALL
)
_PLAIN_FIELD = re.compile(r"[A-Za-z_@][A-Za-z0-9_.@]*")


def of_incident(incident: Incident, fields: Mapping[str, str]) -> Narrowing:
    """Return the filter for `incident`: its labels for which `fields` has a field, else the sources of its lines.

    For an incident about a silent process it is the cluster only, because the lines of that process are the missing ones.
    """
    if incident.is_silence:
        name, cluster = fields.get("cluster"), incident.labels.get("cluster")
        return (((name, cluster),),) if name and cluster else ()
    fields_and_values = ((name, incident.labels.get(label, "")) for label, name in fields.items())
    if labels := tuple((name, value) for name, value in fields_and_values if name and value):
        return (labels,)
    places = dict.fromkeys(_of_source(event, fields) for event in incident.evidence)
    return tuple(places) if len(places) <= MOST_SOURCES and () not in places else ()


def of_line(event: Evidence, fields: Mapping[str, str]) -> Narrowing:
    """Return the filter for the source of a line."""
    conditions = _of_source(event, fields)
    return (conditions,) if conditions else ()


def kql(narrowing: Narrowing) -> str:
    """Return it in Kibana's query language; empty when nothing narrows."""
    alternatives = [" and ".join(f'{name}: "{_quoted(value)}"' for name, value in conditions) for conditions in narrowing]
    return alternatives[0] if len(alternatives) == 1 else " or ".join(f"({alternative})" for alternative in alternatives)


def esql(narrowing: Narrowing, pattern: str, time_field: str) -> str:
    """Return it as a query of ES|QL over the indices of `pattern`, newest first, with index and id of each document."""
    alternatives = [
        " AND ".join(f'{_field(name)} == "{_quoted(value)}"' for name, value in conditions) for conditions in narrowing
    ]
    where = (
        [alternatives[0] if len(alternatives) == 1 else " OR ".join(f"({alternative})" for alternative in alternatives)]
        if alternatives
        else []
    )
    parts = [
        f"FROM {pattern} METADATA _id, _index",
        *(f"WHERE {condition}" for condition in where),
        f"SORT {_field(time_field)} DESC",
    ]
    return " | ".join(parts)


def _of_source(event: Evidence, fields: Mapping[str, str]) -> Conditions:
    """Return the conditions for a line's source: the index of its document, which needs no guess about fields, else the parts
    of its name."""
    if path := origin_path(event.origin, "elasticsearch"):
        return (("_index", path[0]),)
    names = {**LINE_FIELDS, **fields}
    return tuple((names[place], value) for place, value in _places(event.source_id) if names[place])


def _places(source_id: str) -> Iterator[tuple[str, str]]:
    """Yield file, container, unit and host as far as the name of a source has them: `/var/log/kafka/server.log`,
    `compose.log#broker-1`, `docker/broker-1.log`, `journald/host:kafka.service`, `topic/host:file`. A relative path does not
    tell where a shipper read it, and is left out."""
    path, _, inner = source_id.partition("#")
    if inner:
        yield "container", inner.rpartition("/")[2].replace("%23", "#")
        return
    path = path.replace("%23", "#")
    shipped = None if path.startswith("/") else _SHIPPED.fullmatch(path)
    if docker := _DOCKER.fullmatch(path):
        yield "container", docker["container"]
    elif shipped is not None:
        inside = "unit" if _UNIT.fullmatch(path) else "container"
        yield "file" if shipped["file"].startswith("/") else inside, shipped["file"]
        yield "host", shipped["host"]
    elif path.startswith("/"):
        yield "file", path


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _field(name: str) -> str:
    return name if _PLAIN_FIELD.fullmatch(name) else f"`{name.replace('`', '``')}`"
