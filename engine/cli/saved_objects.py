"""Saved objects of Kibana for a configuration: data views of logs and incidents, and a dashboard over them. Pure.

Everything is in the shape of 7.10, which Kibana 7.17 to 9 and OpenSearch Dashboards bring up to date when they import it: so
charts are aggregation-based visualizations, the one kind that all of these have. Source of the shapes: public exports of Kibana
7.10 to 7.17; elastic/kibana, src/core/server/saved_objects/export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

DASHBOARD = "tocsin-incidents-dashboard"
INCIDENTS_VIEW, LOGS_VIEW = "tocsin-incidents", "tocsin-logs"
# the shape of each type, by the last version that changed it until 7.10
_SHAPES = {"index-pattern": "7.6.0", "visualization": "7.10.0", "search": "7.9.3", "dashboard": "7.9.3"}
_INDEX = "kibanaSavedObjectMeta.searchSourceJSON.index"
_COLUMNS = 48  # of a dashboard

SavedObject = Mapping[str, Any]


class ExportedViews(Struct, frozen=True):
    """The views to export: the index of incidents, and `logs_view`, the id of the data view of the logs.

    The data view is created over the indices `logs`; when these are empty it exists already. An empty `logs_view`: no charts of
    logs.
    """

    incidents: str
    logs_view: str = ""
    logs: str = ""
    time_field: str = "@timestamp"
    level_field: str = "log.level"
    logger_field: str = "log.logger"


class Panel(Struct, frozen=True):
    """A part of the dashboard: a saved object, and its place on a grid of 48 columns."""

    type: str
    id: str
    width: int
    height: int


def saved_objects(views: ExportedViews) -> Sequence[SavedObject]:
    """Return everything, each object after those that it refers to."""
    return tuple(_objects(views))


def ndjson(objects: Sequence[SavedObject]) -> str:
    """Return objects as a file to import: one on each line, and a summary of the export on the last line."""
    details = {"excludedObjects": [], "excludedObjectsCount": 0, "exportedCount": len(objects)}
    missing = {"missingRefCount": 0, "missingReferences": []}
    return "".join(f"{_text(line)}\n" for line in (*objects, {**details, **missing}))


def _objects(views: ExportedViews) -> Iterator[SavedObject]:
    yield _incidents_view(views.incidents)
    if views.logs_view and views.logs:
        yield _object("index-pattern", views.logs_view, {"title": views.logs, "timeFieldName": views.time_field})
    yield from _charts()
    panels = list(_PANELS)
    if views.logs_view:
        yield from _log_charts(views)
        panels += _LOG_PANELS
    yield _dashboard(panels)


def _incidents_view(index: str) -> SavedObject:
    formats = {
        "event.url": {"id": "url", "params": {"urlTemplate": "{{rawValue}}", "labelTemplate": "open"}},
        "event.duration": {
            "id": "duration",
            "params": {"inputFormat": "nanoseconds", "outputFormat": "humanizePrecise", "outputPrecision": 1},
        },
    }
    attributes = {"title": index, "timeFieldName": "@timestamp", "fieldFormatMap": _text(formats)}
    return _object("index-pattern", INCIDENTS_VIEW, attributes)


def _charts() -> Iterator[SavedObject]:
    count: Mapping[str, Any] = {"type": "count", "schema": "metric", "params": {}}
    duration = {"type": "avg", "schema": "metric", "params": {"field": "event.duration", "customLabel": "Mean time to resolve"}}
    over_time = {
        "type": "date_histogram",
        "schema": "segment",
        "params": {"field": "@timestamp", "interval": "auto", "min_doc_count": 1, "extended_bounds": {}},
    }
    severities, components = _terms("tocsin.incident.severity", "group"), _terms("rule.category", "group")
    yield _chart("by-severity", "Incidents over time by severity", _BARS, [count, over_time, severities])
    yield _chart("by-component", "Incidents over time by component", _BARS, [count, over_time, components])
    resolved = 'tocsin.incident.status: "resolved"'
    yield _chart("time-to-resolve", "Mean time to resolve", _METRIC, [duration], resolved)
    by_component = [duration, {**count, "params": {"customLabel": "Resolved"}}, _terms("rule.category", "bucket", "Component")]
    yield _chart("time-to-resolve-by-component", "Mean time to resolve by component", _TABLE, by_component, resolved)
    yield _chart("top-rules", "Top rules", _TABLE, [count, _terms("rule.id", "bucket", "Rule", 20)])
    columns = ("tocsin.incident.severity", "message", "labels.cluster", "rule.category", "tocsin.incident.count", "event.url")
    yield _search("open", "Open incidents", "tocsin.incident.is_open: true", columns, INCIDENTS_VIEW)


def _log_charts(views: ExportedViews) -> Iterator[SavedObject]:
    """Yield charts of the logs themselves, which also show errors that no rule matches."""
    level = views.level_field
    errors = f'{level}: ("ERROR" or "FATAL" or "error" or "fatal")'
    count = {"type": "count", "schema": "metric", "params": {}}
    loggers = [count, _terms(views.logger_field, "bucket", "Logger", 20)]
    title = "Errors in the logs by logger, known to a rule or not"
    yield _chart("errors-by-logger", title, _TABLE, loggers, errors, views.logs_view)
    columns = (level, views.logger_field, "message")
    yield _search("errors", "Errors in the logs, known to a rule or not", errors, columns, views.logs_view, views.time_field)


_AXIS: Mapping[str, Any] = {"show": True, "style": {}, "labels": {"show": True, "truncate": 100}}
_BARS: Mapping[str, Any] = {
    "type": "histogram",
    "grid": {"categoryLines": False},
    "categoryAxes": [
        {**_AXIS, "id": "CategoryAxis-1", "type": "category", "position": "bottom", "scale": {"type": "linear"}, "title": {}}
    ],
    "valueAxes": [
        {
            **_AXIS,
            "id": "ValueAxis-1",
            "name": "LeftAxis-1",
            "type": "value",
            "position": "left",
            "scale": {"type": "linear", "mode": "normal"},
            "title": {"text": "Incidents"},
        }
    ],
    "seriesParams": [
        {
            "show": True,
            "type": "histogram",
            "mode": "stacked",
            "data": {"id": "1", "label": "Incidents"},
            "valueAxis": "ValueAxis-1",
            "drawLinesBetweenPoints": True,
            "lineWidth": 2,
            "showCircles": True,
        }
    ],
    "addTooltip": True,
    "addLegend": True,
    "legendPosition": "right",
    "times": [],
    "addTimeMarker": False,
    "labels": {"show": False},
    "thresholdLine": {"show": False, "value": 10, "width": 1, "style": "full", "color": "#E7664C"},
}
_METRIC: Mapping[str, Any] = {
    "type": "metric",
    "addTooltip": True,
    "addLegend": False,
    "metric": {
        "percentageMode": False,
        "useRanges": False,
        "colorSchema": "Green to Red",
        "metricColorMode": "None",
        "colorsRange": [{"from": 0, "to": 10000}],
        "labels": {"show": True},
        "invertColors": False,
        "style": {"bgFill": "#000", "bgColor": False, "labelColor": False, "subText": "", "fontSize": 40},
    },
}
_TABLE: Mapping[str, Any] = {
    "type": "table",
    "perPage": 10,
    "showPartialRows": False,
    "showMetricsAtAllLevels": False,
    "sort": {"columnIndex": None, "direction": None},
    "showTotal": False,
    "totalFunc": "sum",
    "percentageCol": "",
}
_PANELS = (
    Panel("visualization", "tocsin-by-severity", 24, 12),
    Panel("visualization", "tocsin-by-component", 24, 12),
    Panel("search", "tocsin-open", 48, 14),
    Panel("visualization", "tocsin-top-rules", 20, 14),
    Panel("visualization", "tocsin-time-to-resolve", 10, 14),
    Panel("visualization", "tocsin-time-to-resolve-by-component", 18, 14),
)
_LOG_PANELS = (Panel("visualization", "tocsin-errors-by-logger", 16, 14), Panel("search", "tocsin-errors", 32, 14))


def _terms(field: str, schema: str, label: str = "", size: int = 10) -> Mapping[str, Any]:
    params = {"field": field, "orderBy": "1", "order": "desc", "size": size, "otherBucket": False, "missingBucket": False}
    return {"type": "terms", "schema": schema, "params": {**params, **({"customLabel": label} if label else {})}}


def _chart(
    name: str,
    title: str,
    look: Mapping[str, Any],
    aggs: Sequence[Mapping[str, Any]],
    query: str = "",
    view: str = INCIDENTS_VIEW,
) -> SavedObject:
    """Return a visualization: `look` has its type and parameters, `aggs` its metrics and buckets."""
    params = dict(look) if look["type"] in ("histogram", "metric") else {k: v for k, v in look.items() if k != "type"}
    numbered = [{"id": str(number), "enabled": True, **agg} for number, agg in enumerate(aggs, 1)]
    state = {"title": title, "type": look["type"], "aggs": numbered, "params": params}
    attributes = {
        "title": title,
        "description": "",
        "uiStateJSON": "{}",
        "version": 1,
        "visState": _text(state),
        "kibanaSavedObjectMeta": {"searchSourceJSON": _source(query)},
    }
    return _object("visualization", f"tocsin-{name}", attributes, _reference("index-pattern", view, _INDEX))


def _search(
    name: str, title: str, query: str, columns: Sequence[str], view: str, time_field: str = "@timestamp"
) -> SavedObject:
    attributes = {
        "title": title,
        "description": "",
        "hits": 0,
        "columns": list(columns),
        "sort": [[time_field, "desc"]],
        "version": 1,
        "kibanaSavedObjectMeta": {"searchSourceJSON": _source(query, highlightAll=True, version=True)},
    }
    return _object("search", f"tocsin-{name}", attributes, _reference("index-pattern", view, _INDEX))


def _dashboard(panels: Sequence[Panel]) -> SavedObject:
    placed = [
        {
            "version": "7.10.0",
            "panelIndex": str(number),
            "gridData": {"x": x, "y": y, "w": panel.width, "h": panel.height, "i": str(number)},
            "embeddableConfig": {},
            "panelRefName": f"panel_{number}",
        }
        for number, (panel, x, y) in enumerate(_placed(panels))
    ]
    attributes = {
        "title": "tocsin: incidents",
        "description": "What broke around Kafka, since when, and how long it took.",
        "hits": 0,
        "optionsJSON": _text({"hidePanelTitles": False, "useMargins": True}),
        "panelsJSON": _text(placed),
        "timeRestore": True,
        "timeFrom": "now-30d",
        "timeTo": "now",
        "refreshInterval": {"pause": True, "value": 0},
        "version": 1,
        "kibanaSavedObjectMeta": {"searchSourceJSON": _text({"query": {"language": "kuery", "query": ""}, "filter": []})},
    }
    references = [_reference(panel.type, panel.id, f"panel_{number}") for number, panel in enumerate(panels)]
    return _object("dashboard", DASHBOARD, attributes, *references)


def _placed(panels: Sequence[Panel]) -> Iterator[tuple[Panel, int, int]]:
    """Yield panels with their places, in rows from left to right."""
    x = y = height = 0
    for panel in panels:
        if x + panel.width > _COLUMNS:
            x, y, height = 0, y + height, 0
        yield panel, x, y
        x, height = x + panel.width, max(height, panel.height)


def _object(type: str, id: str, attributes: Mapping[str, Any], *references: Mapping[str, str]) -> SavedObject:
    fields = {"id": id, "type": type, "attributes": attributes, "references": list(references)}
    return {**fields, "migrationVersion": {type: _SHAPES[type]}}


def _reference(type: str, id: str, name: str) -> Mapping[str, str]:
    return {"type": type, "id": id, "name": name}


def _source(query: str, **more: bool) -> str:
    return _text({**more, "query": {"language": "kuery", "query": query}, "filter": [], "indexRefName": _INDEX})


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
