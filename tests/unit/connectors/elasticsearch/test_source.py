"""The lines around a document: of its host and file, in order, with the query of the source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from connectors.elasticsearch import open_source, timed
from connectors.elasticsearch.cluster import SearchCluster
from tests.servers.indexing import READ_AT, SHAPES, Line
from tests.unit.connectors.elasticsearch.documents_model import DocumentsModel


def line(number: int, host: str = "h", ms: int | None = None) -> Line:
    at = READ_AT + timedelta(milliseconds=number if ms is None else ms)
    return Line(host, "a.log", f"line {number}", number * 10, 0, at)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> DocumentsModel:
    model = DocumentsModel()
    monkeypatch.setattr(SearchCluster, "of", lambda _: model)
    return model


def fill(model: DocumentsModel, lines: Sequence[Line], shape: str = "Filebeat", index: str = "logs-1") -> None:
    for each in lines:
        model.documents[index, f"{each.host}-{each.text.split()[1]}"] = SHAPES[shape](each)


def around(id: str, index: str = "logs-1", **settings: Any) -> list[tuple[str, str]]:
    """Return the source and the text of each line around a document."""
    source = open_source({"connection": {"urls": ["http://es:9200"]}, "indices": "logs-*", **settings})
    lines = [line for chunk in source.around(index, id) for line in chunk.lines()]
    documents = [(line.source_id, json.loads(line.value)) for line in lines]
    return [(source_id, document.get("message", document.get("log"))) for source_id, document in documents]


@pytest.mark.parametrize("shape", SHAPES)
def test_they_are_those_of_its_host_and_file(model: DocumentsModel, shape: str) -> None:
    fill(model, [line(n, host) for n in range(9) for host in ("h", "other")], shape)
    assert around("h-4") == [("logs-*/h:a.log", f"line {n}") for n in range(9)]
    assert set(model.asked) == {"logs-*"}, "nothing but what the source reads"


def test_so_many_of_each_side_are_read(model: DocumentsModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "MOST_NEAR", 3)
    fill(model, [line(n) for n in range(20)])
    assert [text for _, text in around("h-10")] == [f"line {n}" for n in (8, 9, 10, 11, 12)]
    assert len(model.asked) == 3


def test_more_of_one_time_than_are_read_do_not_hide_it(model: DocumentsModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "MOST_NEAR", 3)
    fill(model, [line(n, ms=0) for n in range(20)])
    assert "line 10" in [text for _, text in around("h-10")]


def test_they_are_in_the_order_of_the_file(model: DocumentsModel) -> None:
    fill(model, [line(n, ms=n // 5) for n in (3, 1, 0, 2, 4)])
    assert [text for _, text in around("h-2")] == [f"line {n}" for n in range(5)]


def test_without_a_place_in_the_file_they_are_in_the_order_in_which_they_came(model: DocumentsModel) -> None:
    about = {"@timestamp": "2026-01-01T00:00:00Z", "host": "h"}
    model.documents = {("logs-1", f"{n}"): {**about, "message": f"line {n}"} for n in range(5)}
    assert around("2") == [("logs-*/h", f"line {n}") for n in range(5)]


def test_they_may_be_in_another_index(model: DocumentsModel) -> None:
    fill(model, [line(n) for n in range(3)], index="logs-1")
    fill(model, [line(n) for n in range(3, 6)], index="logs-2")
    assert [text for _, text in around("h-3", "logs-2")] == [f"line {n}" for n in range(6)]
    assert [text for _, text in around("h-3", "logs-2-shrunk")] == [f"line {n}" for n in range(6)], "by its id alone"


def test_only_what_the_query_selects_is_read(model: DocumentsModel) -> None:
    fill(model, [line(n) for n in range(5)])
    model.documents = {place: {**document, "log.level": "info"} for place, document in model.documents.items()}
    model.documents["logs-1", "h-2"] = {**model.documents["logs-1", "h-2"], "log.level": "debug"}
    query = {"match_phrase": {"log.level": "info"}}
    assert [text for _, text in around("h-3", query=query)] == [f"line {n}" for n in (0, 1, 3, 4)]
    assert around("h-2", query=query) == []


def test_a_document_that_is_gone_has_none(model: DocumentsModel) -> None:
    fill(model, [line(n) for n in range(5)])
    del model.documents["logs-1", "h-2"]
    assert around("h-2") == []


def test_a_document_without_a_time_is_alone(model: DocumentsModel) -> None:
    model.documents = {("logs-1", f"{n}"): {"host": "h", "message": f"line {n}"} for n in range(3)}
    assert around("1") == [("logs-*/h", "line 1")]
