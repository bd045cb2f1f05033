"""The REST API of Connect is asked with a closed set of requests, and every failure is a sentence."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest

from connectors.connect import rest
from connectors.connect.rest import ConnectAsker, ConnectEndpoint
from engine.errors import SourceAway, SourceDenied, SourceError
from tests.unit.connectors.answering import Answer, Asked, answering
from tests.unit.connectors.connect.test_statuses import part, status

SERVER = {"version": "4.3.1", "commit": "abc", "kafka_cluster_id": "dG9jc2lu"}
PLUGINS = [{"class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "type": "source", "version": "4.3.1"}]
UNTOLD = (
    "the topics of connector {} are not known (it has used none yet, or the worker does not tell), so its sizes and converters"
    " are not judged"
)
MISSING = {"error_code": 404, "message": "No status found for connector cdc"}


class Cluster:
    """A Connect cluster that holds `statuses`. Workers before 2.3 only name connectors."""

    def __init__(self, *statuses: dict[str, Any], names_only: bool = False) -> None:
        self.statuses = {status["name"]: status for status in statuses}
        self.names_only = names_only
        self.topics: list[str] | None = ["shop.orders", "heartbeats"]  # None: a worker before 2.5

    def __call__(self, request: Asked) -> Answer:
        path = request.path
        if path == "/":
            return Answer(SERVER)
        if path == "/connector-plugins":
            return Answer(PLUGINS)
        if path.startswith("/connectors?"):
            assert path == "/connectors?expand=status"
            expanded = {name: {"status": status} for name, status in self.statuses.items()}
            return Answer(list(self.statuses) if self.names_only else expanded)
        if path.endswith("/topics"):
            name = unquote(path.removeprefix("/connectors/").removesuffix("/topics"))
            return Answer(
                {name: {"topics": self.topics}} if self.topics is not None else MISSING, 404 if self.topics is None else 200
            )
        name, *task = path.removeprefix("/connectors/").removesuffix("/status").split("/tasks/")
        if task:
            return Answer({"error_code": 404, "message": f"No status found for task {name}-{task[0]}"}, 404)
        return Answer(self.statuses[name]) if name in self.statuses else Answer(MISSING, 404)


def asker_of(*urls: str, **more: Any) -> ConnectAsker:
    return ConnectAsker(ConnectEndpoint(urls, **more))


def test_a_whole_round_is_the_worker_its_connectors_and_plugins() -> None:
    with answering(Cluster(status("cdc", part()))) as server:
        inventory, lines = asker_of(server.url).ask(None, whole=True)
    assert (inventory.version, inventory.tasks, list(inventory.parts)) == ("4.3.1", 1, ["cdc"])
    documents = [json.loads(line) for line in lines]
    assert (documents[0], documents[2:]) == (SERVER, [{"cdc": {"topics": ["heartbeats", "shop.orders"]}}, PLUGINS])
    assert documents[1]["name"] == "cdc"
    assert [request.path for request in server.asked] == [
        "/",
        "/connectors?expand=status",
        "/connectors/cdc/topics",
        "/connector-plugins",
    ]
    assert {request.method for request in server.asked} == {"GET"}


def test_a_round_without_change_is_two_requests_and_the_line_of_the_worker() -> None:
    with answering(Cluster(status("cdc", part()))) as server:
        asker = asker_of(f"{server.url}/")
        inventory, _ = asker.ask(None, whole=True)
        del server.asked[:]
        again, lines = asker.ask(inventory, whole=False)
    assert again == inventory
    assert [json.loads(line) for line in lines] == [SERVER]
    assert len(server.asked) == 2


def test_topics_are_asked_for_again_until_there_are_some_and_not_of_a_worker_that_does_not_track_them() -> None:
    cluster = Cluster(status("cdc", part()))
    cluster.topics = []
    with answering(cluster) as server:
        asker = asker_of(server.url)
        inventory, _ = asker.ask(None, whole=True)
        cluster.topics = ["shop.orders"]
        inventory, lines = asker.ask(inventory, whole=False)
        assert [json.loads(line) for line in lines[1:]] == [{"cdc": {"topics": ["shop.orders"]}}]
        cluster.topics = None
        old, _ = asker.ask(None, whole=True)
        del server.asked[:]
        again, lines = asker.ask(old, whole=False)
    assert (again, len(lines), len(server.asked)) == (old, 1, 2)


@pytest.mark.parametrize("name", ["cdc", "a/b ü"])
def test_workers_before_2_3_are_asked_one_by_one(name: str) -> None:
    with answering(Cluster(names_only=True)) as server:
        asker_of(server.url).ask(None, whole=False)
    cluster = Cluster(status(name, part()), names_only=True)

    def answer(request: Asked) -> Answer:
        return Answer(status(name, part())) if request.path.count("/") == 3 else cluster(request)

    with answering(answer) as server:
        inventory, _ = asker_of(server.url).ask(None, whole=False)
    assert list(inventory.parts) == [name]
    assert all(" " not in request.path and request.path.isascii() for request in server.asked)


def test_what_is_gone_is_asked_about_and_told_in_the_words_of_the_worker() -> None:
    cluster = Cluster(status("cdc", part(), part()))
    with answering(cluster) as server:
        asker = asker_of(server.url)
        before, _ = asker.ask(None, whole=True)
        cluster.statuses.clear()
        after, lines = asker.ask(before, whole=False)
    messages = [json.loads(line).get("message") for line in lines]
    assert messages == [
        None,
        "No status found for task cdc-0",
        "No status found for task cdc-1",
        "No status found for connector cdc",
    ]
    assert after.parts == {}


def test_what_the_worker_does_not_confirm_is_not_gone() -> None:
    cluster = Cluster(status("cdc", part()))

    def answer(request: Asked) -> Answer:
        return Answer({"error_code": 500, "message": "timeout"}, 500) if "/tasks/" in request.path else cluster(request)

    with answering(answer) as server:
        asker = asker_of(server.url)
        before, _ = asker.ask(None, whole=True)
        cluster.statuses["cdc"]["tasks"] = []
        after, lines = asker.ask(before, whole=False)
    assert len(lines) == 1
    assert after == before


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (Answer({"message": "no"}, 401), SourceDenied, "does not let us in (status 401); check user and password"),
        (Answer({"message": "rebalance"}, 409), SourceAway, 'answers with status 409: {"message": "rebalance"}'),
        (Answer("<html>hello</html>"), SourceError, "is not Kafka Connect: no such JSON comes back; check url"),
        (Answer("", 302, {"Location": "http://other/login"}), SourceError, "redirects to other, which is not followed"),
        (Answer([1, 2]), SourceError, "is not Kafka Connect"),
    ],
)
def test_an_answer_that_is_none_is_a_sentence(answer: Answer, kind: type[SourceError], sentence: str) -> None:
    with answering(lambda request: answer) as server, pytest.raises(kind) as raised:
        asker_of(server.url).ask(None, whole=True)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "document",
    [
        {"cdc": {}},
        {"cdc": {"status": {"name": "cdc"}}},
        {"cdc": {"status": {**status("cdc"), "tasks": [{"state": "RUNNING"}]}}},
        {"cdc": 7},
    ],
)
def test_a_status_of_another_shape_is_refused_as_a_whole(document: Any) -> None:
    answer: Callable[[Asked], Answer] = lambda request: Answer(SERVER if request.path == "/" else document)  # noqa: E731
    with answering(answer) as server, pytest.raises(SourceError, match="a status of a connector has another shape"):
        asker_of(server.url).ask(None, whole=True)


def test_the_worker_that_answered_last_is_asked_first() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with answering(Cluster()) as server:
        asker = asker_of(closed, server.url)
        asker.ask(None, whole=False)
        assert asker._first == 1
        asker.ask(None, whole=False)
    with pytest.raises(SourceAway) as raised:
        asker.ask(None, whole=False)
    assert str(raised.value).count("cannot be reached (ConnectionRefusedError)") == 2


def test_a_round_has_an_end_however_many_connectors_there_are() -> None:
    times = iter([0.0, 1.0, 2.0, 61.0])
    with (
        answering(Cluster(status("cdc", part()), names_only=True)) as server,
        pytest.raises(SourceAway, match="more than 60 s"),
    ):
        ConnectAsker(ConnectEndpoint((server.url,)), lambda: next(times)).ask(None, whole=True)


def test_user_and_password_are_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_PASSWORD", "s3cret")
    with answering(Cluster()) as server:
        asker = asker_of(server.url, user="tocsin", password="env:CONNECT_PASSWORD")
        asker.ask(None, whole=False)
    assert server.asked[0].headers["authorization"] == "Basic dG9jc2luOnMzY3JldA=="
    assert "s3cret" not in repr(asker)


def test_an_audit_keeps_only_settings_without_secrets() -> None:
    config = {"connector.class": "x.Source", "errors.tolerance": "all", "database.password": "s3cret"}
    info = {"name": "cdc", "config": config, "tasks": [], "type": "source"}
    cluster = Cluster(status("cdc", part()))

    def answer(request: Asked) -> Answer:
        answers = {"/connectors?expand=info": {"cdc": {"info": info}}, "/connectors/cdc/topics": {"cdc": {"topics": ["a"]}}}
        return Answer(answers[request.path]) if request.path in answers else cluster(request)

    with answering(answer) as server:
        lines, hidden = asker_of(server.url).audit()
        place = server.url.removeprefix("http://")
    assert hidden == []
    assert [json.loads(line) for line in lines[1:]] == [
        {"cdc": {"topics": ["a"]}},
        {"name": "cdc", "config": {"connector.class": "x.Source", "errors.tolerance": "all"}, "type": "source"},
        {"worker": place, **SERVER},
    ]
    assert "s3cret" not in "".join(lines)
    assert {request.method for request in server.asked} == {"GET"}


def test_an_audit_says_what_a_worker_does_not_show() -> None:
    cluster = Cluster(status("cdc", part()), status("old", part()), names_only=True)
    info = {"name": "cdc", "config": {}, "type": "sink"}

    def answer(request: Asked) -> Answer:
        if request.path == "/connectors?expand=info":
            return Answer(["cdc", "old"])
        if request.path in ("/connectors/cdc", "/connectors/old"):
            return Answer(info) if request.path.endswith("cdc") else Answer({"error_code": 500}, 500)
        return Answer({}, 403) if request.path.endswith("/topics") else cluster(request)

    with answering(answer) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{closed.getsockname()[1]}"
        _, hidden = asker_of(server.url, away).audit()
    assert hidden[:-1] == [
        "the settings of connector old cannot be read, so they are not judged",
        UNTOLD.format("cdc"),
        UNTOLD.format("old"),
    ]
    assert hidden[-1].endswith("so its version is not judged")


def test_an_audit_asks_for_the_topics_of_all_connectors_and_names_those_that_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rest, "MOST_TOPICS", 1)
    names = ["failing", "first", "named", "second", "unused"]
    cluster = Cluster(*(status(name, part()) for name in names))
    infos = {name: {"info": {"name": name, "config": {}, "type": "source"}} for name in names}
    infos["named"]["info"] = {"name": "named", "config": {"topics": "orders"}, "type": "sink"}

    def answer(request: Asked) -> Answer:
        answers = {
            "/connectors?expand=info": Answer(infos),
            "/connectors/failing/topics": Answer({"error_code": 500}, 500),
            "/connectors/named/topics": Answer({"named": {"topics": []}}),
            "/connectors/unused/topics": Answer({"unused": {"topics": []}}),
        }
        return answers.get(request.path) or cluster(request)

    with answering(answer) as server:
        lines, hidden = asker_of(server.url).audit()
    documents = [json.loads(line) for line in lines]
    topics = [name for document in documents for name in names if name in document]
    assert topics == ["first", "second"]
    assert hidden == [UNTOLD.format("failing"), UNTOLD.format("unused")]
