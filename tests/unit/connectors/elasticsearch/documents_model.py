"""A cluster of documents that are searched for by id, time and text, in memory: the questions of the lines around a line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from connectors.elasticsearch.answers import DocumentHit, SearchPage, _Hits
from connectors.elasticsearch.documents import moment
from connectors.elasticsearch.timed import MISSING, NANOS_IN_MS
from engine.shipping import value_at


@dataclass
class DocumentsModel:
    """`documents` by index and id, in the order in which they came. `asked`: the patterns of the searches."""

    documents: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)

    def page(self, body: Mapping[str, Any], index: str | None = None, answer_s: float | None = None) -> SearchPage:
        assert answer_s is not None, "a reader waits for it"
        self.asked.append(index)
        ((_, how),) = body["sort"][0].items()
        hits = [self._hit(number, *place) for number, place in enumerate(self.documents)]
        found = [hit for hit in hits if all(_selects(each, hit) for each in _filters(body["query"]))]
        ordered = sorted(found, key=lambda hit: hit.sort[0], reverse=how["order"] == "desc")
        return SearchPage(_Hits(ordered[: body["size"]]))

    def _hit(self, number: int, index: str, id: str) -> DocumentHit:
        document = self.documents[index, id]
        at_ms = _ms(document)
        sort = [MISSING if at_ms is None else at_ms * NANOS_IN_MS]
        return DocumentHit(index, id, number, Raw(json.dumps(document).encode()), sort)


def _filters(query: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return query["bool"]["filter"]  # type: ignore[no-any-return]


def _ms(document: Mapping[str, Any]) -> int | None:
    at = moment(document.get("@timestamp", ""))
    return None if at is None else round(at.timestamp() * 1000)


def _selects(clause: Mapping[str, Any], hit: DocumentHit) -> bool:
    document = json.loads(bytes(hit.source))
    ((kind, inner),) = clause.items()
    if kind == "ids":
        return hit.id in inner["values"]
    ((name, wanted),) = inner.items()
    if kind == "range":
        at_ms = _ms(document)
        assert (name, wanted["format"]) == ("@timestamp", "epoch_millis")
        return at_ms is not None and wanted["gte"] <= at_ms < wanted["lt"]
    assert kind == "match_phrase"
    return bool(value_at(document, name) == wanted)
