"""Saved objects: shaped as public exports are, complete in themselves, and about fields that incidents have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connectors.elasticsearch.incidents.indices import mappings
from engine.cli.saved_objects import DASHBOARD, ExportedViews, SavedObject, ndjson, saved_objects

WITH_LOGS = ExportedViews("tocsin-incidents", "tocsin-logs", "logs-*", "ts", "level", "logger_name")
THERE = ExportedViews("tocsin-incidents", "2a3f-own")
ALONE = ExportedViews("tocsin-incidents")

# what exports of Kibana 7.10 to 7.17 have in each type: attributes that all of them have, attributes that some have
SHAPES: Mapping[str, tuple[set[str], set[str]]] = {
    "index-pattern": ({"title", "timeFieldName"}, {"fieldFormatMap", "fields", "fieldAttrs", "runtimeFieldMap", "typeMeta"}),
    "visualization": ({"title", "visState", "uiStateJSON", "description", "version", "kibanaSavedObjectMeta"}, set()),
    "search": ({"title", "description", "hits", "columns", "sort", "version", "kibanaSavedObjectMeta"}, {"grid"}),
    "dashboard": (
        {"title", "description", "hits", "optionsJSON", "panelsJSON", "timeRestore", "version", "kibanaSavedObjectMeta"},
        {"timeFrom", "timeTo", "refreshInterval"},
    ),
}
TEXTS = ("fieldFormatMap", "visState", "uiStateJSON", "optionsJSON", "panelsJSON", "searchSourceJSON")  # JSON inside of JSON


@pytest.fixture(params=[WITH_LOGS, THERE, ALONE], ids=["logs", "logs-there", "no-logs"])
def views(request: pytest.FixtureRequest) -> ExportedViews:
    given: ExportedViews = request.param
    return given


def test_each_object_has_the_attributes_of_its_type(views: ExportedViews) -> None:
    for each in saved_objects(views):
        needed, possible = SHAPES[each["type"]]
        assert each.keys() == {"id", "type", "attributes", "references", "migrationVersion"}
        assert needed <= each["attributes"].keys() <= needed | possible, each["id"]
        assert list(each["migrationVersion"]) == [each["type"]]


def test_what_is_json_inside_of_json_can_be_read(views: ExportedViews) -> None:
    read = [json.loads(text) for each in saved_objects(views) for text in texts(each["attributes"])]
    assert len(read) > 10


def test_every_reference_is_in_the_file_or_there_already_and_comes_first(views: ExportedViews) -> None:
    seen = {("index-pattern", "2a3f-own")} if views is THERE else set()
    for each in saved_objects(views):
        assert {(reference["type"], reference["id"]) for reference in each["references"]} <= seen, each["id"]
        seen.add((each["type"], each["id"]))


def test_panels_name_their_references_and_lie_side_by_side(views: ExportedViews) -> None:
    board = next(each for each in saved_objects(views) if each["id"] == DASHBOARD)
    panels = json.loads(board["attributes"]["panelsJSON"])
    assert [panel["panelRefName"] for panel in panels] == [reference["name"] for reference in board["references"]]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridData"]["x"], panel["gridData"]["x"] + panel["gridData"]["w"])
        for y in range(panel["gridData"]["y"], panel["gridData"]["y"] + panel["gridData"]["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 48
    assert all(panel["panelIndex"] == panel["gridData"]["i"] for panel in panels)


def test_aggregations_are_numbered_and_ordered_by_their_metric(views: ExportedViews) -> None:
    for state in states(views):
        assert [agg["id"] for agg in state["aggs"]] == [str(number) for number in range(1, len(state["aggs"]) + 1)]
        assert state["aggs"][0]["schema"] == "metric"
        assert all(agg.keys() == {"id", "enabled", "type", "schema", "params"} for agg in state["aggs"])


def test_charts_of_incidents_are_over_fields_that_incidents_have() -> None:
    known = {"labels.cluster": "keyword", "message": "text", **dict(mapped(mappings()))}
    for state in states(ALONE):
        for agg in state["aggs"]:
            if field := agg["params"].get("field"):
                assert known[field] in ("keyword", "date", "long"), field
    (search,) = [each for each in saved_objects(ALONE) if each["type"] == "search"]
    assert set(search["attributes"]["columns"]) <= known.keys()


def test_the_logs_are_those_of_the_configuration() -> None:
    view = next(each for each in saved_objects(WITH_LOGS) if each["id"] == "tocsin-logs")
    assert view["attributes"] == {"title": "logs-*", "timeFieldName": "ts"}
    said = ndjson(saved_objects(WITH_LOGS))
    assert "logger_name" in said and "level: (" in said and "log.logger" not in said
    assert [each["id"] for each in saved_objects(THERE) if each["type"] == "index-pattern"] == ["tocsin-incidents"]
    assert "errors" not in ndjson(saved_objects(ALONE))


def test_a_file_has_an_object_a_line_and_what_was_exported_on_the_last(views: ExportedViews) -> None:
    objects = saved_objects(views)
    lines = [json.loads(line) for line in ndjson(objects).splitlines()]
    assert lines[:-1] == json.loads(json.dumps(objects))
    assert (lines[-1]["exportedCount"], lines[-1]["missingReferences"]) == (len(objects), [])


def states(views: ExportedViews) -> Iterator[dict[str, Any]]:
    for each in saved_objects(views):
        if each["type"] == "visualization":
            yield json.loads(each["attributes"]["visState"])


def texts(attributes: SavedObject) -> Iterator[str]:
    for name, value in attributes.items():
        if name in TEXTS:
            yield value
        elif isinstance(value, Mapping):
            yield from texts(value)


def mapped(mapping: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in mapping.get("properties", {}).items():
        yield f"{path}{name}", value.get("type", "object")
        yield from mapped(value, f"{path}{name}.")
