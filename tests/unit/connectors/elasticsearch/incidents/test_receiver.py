"""The receiver against answers that a real cluster seldom gives: overload, refusals, pages of a proxy."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from connectors.elasticsearch.connection import ElasticsearchConnection, open_client
from connectors.elasticsearch.incidents.receiver import ElasticsearchReceiver, open_receiver
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from tests.unit.cli.incidents import incident
from tests.unit.connectors.answering import Answer, AnsweringServer, Asked, answering

NOW = datetime(2023, 2, 3, 4, 0, tzinfo=UTC)
TOLD = Notification(incident(), Reason.OPENED)
WRITTEN = {"errors": False, "items": [{"index": {"_index": "i", "_id": "1", "status": 201}}]}


def ready(request: Asked, bulk: Answer) -> Answer:
    """Answer as a cluster whose indices are there, and to a bulk request with `bulk`."""
    if request.path.startswith("/_bulk"):
        return bulk
    if "_mapping" in request.path:
        return Answer({"i": {"mappings": {"_meta": {"tocsin": 1}}}})
    return Answer({"index_templates": [{"name": "i", "index_template": {"version": 1}}], "hits": {"hits": []}})


def delivered(answer: Callable[[Asked], Answer], times: int = 1) -> tuple[list[Receipt], AnsweringServer]:
    with answering(answer) as server:
        client = open_client(ElasticsearchConnection((server.url,)))
        receiver = ElasticsearchReceiver(client, "es", "i", now=lambda: NOW)
        receipts = [receiver.deliver(TOLD) for _ in range(times)]
        client.close()
    return receipts, server


def test_the_indices_are_looked_at_once_and_the_document_bears_the_time_as_its_version() -> None:
    receipts, server = delivered(lambda request: ready(request, Answer(WRITTEN)), times=2)
    assert receipts == [Receipt(DeliveryState.DELIVERED)] * 2
    assert [request.path.partition("?")[0] for request in server.asked] == [
        "/_index_template/i",
        "/i/_mapping",
        "/_bulk",
        "/_bulk",
    ]
    action = json.loads(server.asked[-1].body.splitlines()[0])["index"]
    assert action == {"_index": "i", "_id": "inc-0123456789", "version": 1675396800000, "version_type": "external"}


@pytest.mark.parametrize(
    ("bulk", "state", "why"),
    [
        (Answer({"error": {"reason": "queue"}}, 429), DeliveryState.RETRY_LATER, "is overloaded (status 429): queue"),
        (Answer({"error": {"reason": "no"}}, 401), DeliveryState.RETRY_LATER, "not accept the credentials (status 401): no"),
        (Answer({"error": {"reason": "no"}}, 403), DeliveryState.RETRY_LATER, "does not allow it (status 403): no"),
        (Answer({"error": {"reason": "big"}}, 413), DeliveryState.REJECTED, "answers with status 413: big"),
        (Answer("<html>down</html>", 502), DeliveryState.RETRY_LATER, "answers with status 502: <html>down</html>"),
        (Answer("<html>log in</html>"), DeliveryState.RETRY_LATER, "is not Elasticsearch"),
    ],
)  # fmt: skip
def test_what_is_not_written_says_why(bulk: Answer, state: DeliveryState, why: str) -> None:
    (receipt,), _ = delivered(lambda request: ready(request, bulk))
    assert receipt.state is state
    assert why in receipt.why


def test_a_cluster_that_lets_nobody_make_templates_is_written_to() -> None:
    def answer(request: Asked) -> Answer:
        if "_index_template" in request.path:
            return Answer({"error": {"reason": "cluster privilege"}}, 403)
        return ready(request, Answer(WRITTEN))

    assert delivered(answer)[0] == [Receipt(DeliveryState.DELIVERED)]


def test_indices_that_may_not_be_looked_at_are_written_to() -> None:
    def answer(request: Asked) -> Answer:
        return Answer({"error": {}}, 403) if "_mapping" in request.path else ready(request, Answer(WRITTEN))

    assert delivered(answer)[0] == [Receipt(DeliveryState.DELIVERED)]


def test_after_a_failure_the_indices_are_looked_at_again() -> None:
    gone = {"items": [{"index": {"_index": "i", "status": 404, "error": {"reason": "no such index [i]"}}}]}
    receipts, server = delivered(lambda request: ready(request, Answer(gone)), times=2)
    assert [receipt.state for receipt in receipts] == [DeliveryState.RETRY_LATER] * 2
    assert sum("_mapping" in request.path for request in server.asked) == 2


def test_a_cluster_that_is_away_is_tried_again() -> None:
    receipt = open_receiver(ElasticsearchConnection(("http://127.0.0.1:9",)), "i").deliver(TOLD)
    assert receipt.state is DeliveryState.RETRY_LATER and receipt.unsure
    assert receipt.why == "Elasticsearch at 127.0.0.1:9 cannot be reached (ConnectionRefusedError)"


def test_it_keeps_a_record_and_shows_no_secret() -> None:
    receiver = open_receiver(ElasticsearchConnection(("http://127.0.0.1:9",)), "i")
    assert receiver.records and receiver.rate_limit_key == "" and repr(receiver) == "ElasticsearchReceiver(127.0.0.1:9)"
