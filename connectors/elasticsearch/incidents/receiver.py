"""Indices as a receiver that keeps a record: one document for each incident, and optionally one for each change.

Writing is idempotent. An incident's document has the incident's id, and the time of the attempt as its version: an attempt that
arrives late never replaces a later one, and a document that is written again after a crash replaces itself. The id of a
change's document contains the revision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from elasticsearch import Elasticsearch, SerializationError

from connectors.elasticsearch.connection import (
    ApiError,
    ElasticsearchConnection,
    TransportError,
    explained,
    is_passing,
    open_client,
)
from connectors.elasticsearch.incidents.documents import change_document, change_id, incident_document, incident_id
from connectors.elasticsearch.incidents.indices import VERSION, VERSION_KEY, index_body, index_template, mappings
from connectors.elasticsearch.incidents.outcomes import Superseded, receipt_of, refused
from engine.model.inspections import Inspection, fault
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt

__all__ = ["ElasticsearchReceiver", "open_receiver"]

ANSWER_S = 20.0
INSPECTED_S = 5.0
AT_ONCE = 200  # documents of one request
PRUNE_EVERY_S, PRUNE_FOR_S, PRUNE_AT_ONCE = 3600.0, 5.0, 500
ABSENT, DENIED = 404, 403

Operation = tuple[Mapping[str, Any], Mapping[str, Any] | None]  # a line of a bulk request, and the document after it


class ElasticsearchReceiver:
    """Writes incidents to the index `index` of a cluster, and changes to `changes` unless that is empty.

    Documents of ended incidents that were not written for `retention_s` (0: kept for ever) are removed after a delivery, a few
    at a time.

    Args:
        place: the hosts of the cluster, for sentences.
        now: the clock for the versions of documents.
    """

    edits: ClassVar[bool] = True  # a document is replaced by its newest version
    records: ClassVar[bool] = True  # every incident has its document
    gathers: ClassVar[bool] = False  # it keeps a record of each incident
    rate_limit_key: ClassVar[str] = ""  # a cluster needs no pacing

    def __init__(
        self,
        client: Elasticsearch,
        place: str,
        index: str,
        changes: str = "",
        retention_s: float = 0.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._place, self._now = client, place, now
        self._index, self._changes, self._retention_s = index, changes, retention_s
        self._is_prepared = False
        self._pruned_at: float | None = None

    def __repr__(self) -> str:
        return f"ElasticsearchReceiver({self._place})"

    def deliver(self, notification: Notification) -> Receipt:
        """Write the incident and its changes. The delivery is retried when the cluster is unavailable or overloaded or a
        privilege is missing; it is rejected, with the reason, when the index does not accept a document."""
        try:
            self._prepare()
            if notification.reason is Reason.TEST:
                return self._try_out(notification)
            receipt = self._write(notification)
            self._prune()
        except (ApiError, TransportError) as error:
            return self._failed(error)
        return receipt

    def inspect(self) -> list[Inspection]:
        """Try the connection, the credentials and the right to see the indices; nothing is created or written."""
        client = self._client.options(ignore_status=ABSENT, request_timeout=INSPECTED_S)
        try:
            present = [name for name in self._names if client.indices.get_mapping(index=name).meta.status != ABSENT]
        except (ApiError, TransportError) as error:
            return [fault(explained(error, self._place))]
        absent = [name for name in self._names if name not in present]
        creation = f"; {', '.join(absent)} will be created" if absent else ""
        return [Inspection(f"Elasticsearch at {self._place} answers{creation}; nothing was written")]

    def _write(self, notification: Notification) -> Receipt:
        now = self._now()
        for operations in _in_parts(list(self._change_operations(notification, now))):
            receipt = receipt_of(self._bulk(operations), self._place)
            if receipt.state is not DeliveryState.DELIVERED:
                return self._keep_prepared(receipt)
        incident = notification.incident
        document = incident_document(incident, notification.links, now)
        version = int(now.timestamp() * 1000)
        for _ in range(2):
            action = {"_index": self._index, "_id": incident_id(incident), "version": version, "version_type": "external"}
            receipt = receipt_of(self._bulk([({"index": action}, document)]), self._place)
            if not isinstance(receipt, Superseded):
                return self._keep_prepared(receipt)
            stored = int(self._client.get(index=self._index, id=incident_id(incident), source=False)["_version"])
            if stored <= int(self._now().timestamp() * 1000):
                return Receipt(DeliveryState.DELIVERED)  # a later attempt was written before
            version = stored + 1  # the clock was ahead when it was written
        return Receipt(
            DeliveryState.RETRY_LATER, f"Elasticsearch at {self._place} has another version of the document each time"
        )

    def _keep_prepared(self, receipt: Receipt) -> Receipt:
        """Have the next attempt prepare the indices again if this one failed: they may have been removed. Return `receipt`."""
        self._is_prepared = receipt.state is DeliveryState.DELIVERED
        return receipt

    def _change_operations(self, notification: Notification, now: datetime) -> Iterator[Operation]:
        for change in notification.changes if self._changes else ():
            yield (
                {"index": {"_index": self._changes, "_id": change_id(change)}},
                change_document(change, notification.links, now),
            )

    def _try_out(self, notification: Notification) -> Receipt:
        """Write a test document, remove it, and search for old documents: every kind of request that deliveries make."""
        receipt = self._write(notification)
        if receipt.state is DeliveryState.DELIVERED:
            self._client.delete(index=self._index, id=incident_id(notification.incident))
            self._aged(self._index, self._now())
        return receipt

    def _bulk(self, operations: Sequence[Operation]) -> Mapping[str, Any]:
        lines = [line for action, document in operations for line in (action, document) if line is not None]
        return _map(self._client.bulk(operations=lines))

    @property
    def _names(self) -> tuple[str, ...]:
        return (self._index, self._changes) if self._changes else (self._index,)

    def _prepare(self) -> None:
        """Create the index template and the indices, and update the mappings of older ones, unless done before."""
        if self._is_prepared:
            return
        self._put_template()
        for name in self._names:
            self._put_index(name)
        self._is_prepared = True

    def _put_template(self) -> None:
        """Put the template, unless it exists. It matters only for an index that is removed while we write to it, so incidents
        are written even if the cluster does not allow a template."""
        name = self._index
        try:
            stored = self._client.options(ignore_status=ABSENT).indices.get_index_template(name=name)
            versions = [template["index_template"].get("version") or 0 for template in _map(stored).get("index_templates", ())]
            if not versions or versions[0] < VERSION:
                body = index_template(self._names)
                self._client.indices.put_index_template(name=name, **{k.lstrip("_"): v for k, v in body.items()})
        except ApiError as error:
            if is_passing(error):
                raise

    def _put_index(self, name: str) -> None:
        mapping = self._client.options(ignore_status=(ABSENT, DENIED)).indices.get_mapping(index=name)
        if mapping.meta.status == ABSENT:
            body = index_body()
            creation = self._client.options(ignore_status=400).indices.create(index=name, **body)
            if creation.meta.status == 400 and "resource_already_exists" not in str(creation.body):
                raise refused(creation)
        elif mapping.meta.status == 200:
            versions = [index["mappings"].get("_meta", {}).get(VERSION_KEY) for index in _map(mapping).values()]
            if any(isinstance(version, int) and version < VERSION for version in versions):
                body = mappings()
                self._client.indices.put_mapping(index=name, properties=body["properties"], meta=body["_meta"])

    def _prune(self) -> None:
        """Remove documents older than the retention; after an error, again in an hour."""
        began = time.monotonic()
        if not self._retention_s or (self._pruned_at is not None and began - self._pruned_at < PRUNE_EVERY_S):
            return
        self._pruned_at = began
        try:
            for name in self._names:
                while (hits := self._aged(name, self._now())) and time.monotonic() - began < PRUNE_FOR_S:
                    self._bulk([_deletion(hit) for hit in hits])
                    self._client.indices.refresh(index=name)
        except (ApiError, TransportError):
            return

    def _aged(self, name: str, now: datetime) -> Sequence[Mapping[str, Any]]:
        """Return documents of ended incidents that were not written for longer than the retention, the oldest first."""
        before = (now - timedelta(seconds=self._retention_s)).isoformat()
        conditions: list[dict[str, Any]] = [{"range": {"event.ingested": {"lt": before}}}]
        if name == self._index:
            conditions.append({"term": {"tocsin.incident.is_open": False}})
        asked: dict[str, Any] = {"sort": ["event.ingested"], "source": False, "seq_no_primary_term": True}
        asked |= {"size": PRUNE_AT_ONCE, "ignore_unavailable": True}
        answer = _map(self._client.search(index=name, query={"bool": {"filter": conditions}}, **asked))
        hits: Sequence[Mapping[str, Any]] = answer["hits"]["hits"]
        return hits

    def _failed(self, error: Exception) -> Receipt:
        self._is_prepared = False
        sentence = explained(error, self._place)
        is_unsure = not isinstance(error, ApiError)
        if isinstance(error, ApiError) and error.status_code in (400, 413):
            return Receipt(DeliveryState.REJECTED, sentence)
        return Receipt(DeliveryState.RETRY_LATER, sentence, unsure=is_unsure)


def open_receiver(
    connection: ElasticsearchConnection, index: str, changes: str = "", retention_s: float = 0.0
) -> ElasticsearchReceiver:
    """Return the receiver that writes to `index` and, unless it is empty, `changes`. Raises UsageError as open_client does."""
    return ElasticsearchReceiver(open_client(connection, ANSWER_S), connection.place, index, changes, retention_s)


def _map(answer: Any) -> Mapping[str, Any]:
    """Return the JSON of an answer. Raises SerializationError when it is none: a page of a proxy, or for a login."""
    if not isinstance(answer.body, dict):
        raise SerializationError("no JSON object")
    return answer.body


def _in_parts(operations: Sequence[Operation]) -> Iterator[Sequence[Operation]]:
    yield from (operations[at : at + AT_ONCE] for at in range(0, len(operations), AT_ONCE))


def _deletion(hit: Mapping[str, Any]) -> Operation:
    """Return the operation that removes a document, unless it was written meanwhile."""
    seen = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
    return {"delete": {"_index": hit["_index"], "_id": hit["_id"], **seen}}, None
