"""A node with passwords, API keys and TLS: who may is read for, who may not is told which privilege is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.elasticsearch import by_time, open_source, sequence
from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.connection import ElasticsearchConnection
from connectors.elasticsearch.incidents.receiver import ElasticsearchReceiver, open_receiver
from connectors.elasticsearch.source import ElasticsearchSource
from engine.errors import SourceAway, SourceDenied, SourceError
from engine.model.notifications import DeliveryState, IncidentChange, Notification, Reason
from tests.servers.batches import Reader
from tests.servers.indexing import Index
from tests.servers.jars import NoJars
from tests.servers.secured_search import ADMIN, PASSWORD, SecuredNode, secured_node
from tests.servers.test_elasticsearch_source import texts
from tests.unit.cli.incidents import incident

pytestmark = pytest.mark.slow

READER = ("read", "monitor", "view_index_metadata", "maintenance")
WRITER = ("create_index", "index", "read", "delete", "view_index_metadata")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    try:
        with secured_node(tmp_path_factory.mktemp("secured")) as running:
            yield running
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))


@pytest.fixture
def index(node: SecuredNode) -> Index:
    index = Index(node, refresh_interval="1s")
    index.say("one", "two")
    index.call("POST", "_refresh")
    return index


class Door:
    """Ways in: secrets in files of the test."""

    def __init__(self, node: SecuredNode, folder: Path) -> None:
        self.node, self.folder = node, folder

    def by_key(self, key: str) -> dict[str, Any]:
        return self._with(api_key=key)

    def by_password(self, password: str) -> dict[str, Any]:
        return {**self._with(password=password), "user": ADMIN}

    def by_privileges(self, *privileges: str, names: str = "*", cluster: tuple[str, ...] = ()) -> dict[str, Any]:
        return self.by_key(self.node.api_key({"names": [names], "privileges": list(privileges)}, cluster=cluster))

    def _with(self, **secrets: str) -> dict[str, Any]:
        for name, secret in secrets.items():
            (self.folder / name).write_text(secret)
        references = {name: f"file:{self.folder / name}" for name in secrets}
        return {"urls": [self.node.url], "ca": f"file:{self.node.certificate}", **references}


@pytest.fixture
def door(node: SecuredNode, tmp_path: Path) -> Door:
    return Door(node, tmp_path)


def source(connection: dict[str, Any], index: Index, **settings: Any) -> ElasticsearchSource:
    return open_source({"connection": connection, "indices": f"{index.name}*", **settings})


def test_a_key_with_the_privileges_of_the_documentation_and_a_password_read_at_once(index: Index, door: Door) -> None:
    index.say("three")
    for connection in (door.by_privileges(*READER, names=f"{index.name}*"), door.by_password(PASSWORD)):
        found = source(connection, index).look()
        assert (found.choice.strategy, found.choice.warnings) == ("sequence", ())
        assert texts(Reader(source(connection, index)).drain()) == ["one", "two", "three"]


@pytest.mark.parametrize("final", [True, False])
def test_a_wrong_password_and_a_wrong_key_are_said(index: Index, door: Door, final: bool) -> None:
    for connection in (door.by_password("wrong"), door.by_key("wrong:key")):
        with pytest.raises(
            SourceDenied if final else SourceAway, match=r"does not accept the credentials \(status 401\).*check api_key"
        ):
            source(connection, index, final=final).initial()


def test_an_authority_that_nobody_named_is_said(index: Index, door: Door) -> None:
    connection = {**door.by_password(PASSWORD), "ca": ""}
    with pytest.raises(SourceError, match=r"not signed by a trusted authority; name the authority's with ca: file:PATH"):
        source(connection, index).look()


def test_without_maintenance_it_is_named_and_lines_come_late(index: Index, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = door.by_privileges("read", "monitor", "view_index_metadata", names=f"{index.name}*")
    found = source(connection, index).look()
    assert found.choice.strategy == "sequence"
    assert found.choice.warnings == (
        "the privilege `maintenance` is missing: lines are read 3 s late, once they are visible by themselves",
    )
    monkeypatch.setattr(sequence.time, "sleep", lambda _: None)
    reader = Reader(source(connection, index, final=True)).drain()
    assert texts(reader) == ["one", "two"]


def test_with_read_alone_it_is_read_by_time_and_the_missing_privilege_is_named(
    index: Index, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    connection = door.by_privileges("read", names=f"{index.name}*")
    choice = source(connection, index).look().choice
    assert choice.strategy == "timestamp"
    assert "the privilege `monitor` is missing" in choice.reason
    assert texts(Reader(source(connection, index)).drain()) == ["one", "two"]


def test_without_read_the_privilege_is_named(index: Index, door: Door) -> None:
    connection = door.by_privileges("monitor", "view_index_metadata", "maintenance", names=f"{index.name}*")
    with pytest.raises(SourceDenied, match=r"status 403.*granted by the index privileges \[.*read"):
        source(connection, index).look()


def test_a_privilege_that_is_taken_away_is_waited_for(index: Index, door: Door) -> None:
    key = door.node.api_key({"names": [f"{index.name}*"], "privileges": list(READER)})
    opened = source(door.by_key(key), index)
    reader = Reader(opened).drain()
    door.node.call("DELETE", "/_security/api_key", {"ids": [key.partition(":")[0]]})
    index.say("three")
    with pytest.raises(SourceAway, match=r"status 401"):
        opened.latest(reader.at)
    door.by_key(door.node.api_key({"names": [f"{index.name}*"], "privileges": list(READER)}))  # a new one in its file
    SearchCluster.of(opened.connection)._connect()
    assert texts(reader.drain()) == ["one", "two", "three"]


def test_a_strategy_that_may_not_look_any_more_how_far_it_was_read_begins_anew(
    index: Index, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_time, "DELAY_S", 0.0)
    reader = Reader(source(door.by_privileges(*READER, names=f"{index.name}*"), index)).drain()
    index.say("three")
    index.call("POST", "_refresh")
    reader.source = source(door.by_privileges("read", names=f"{index.name}*"), index, read_by="timestamp")
    SearchCluster.of(reader.source.connection)._connect()
    assert any("begins again at `start`" in warning for warning in reader.source.look(reader.at).choice.warnings)
    assert texts(reader.drain()) == ["one", "two", "one", "two", "three"]


def test_incidents_are_written_with_the_privileges_of_the_documentation(node: SecuredNode, door: Door) -> None:
    connection = door.by_privileges(*WRITER, names="sec-*", cluster=("manage_index_templates",))
    told = incident(id="inc-1", revision=1)
    with_changes = Notification(told, Reason.UPDATED, changes=(IncidentChange(told, Reason.OPENED),))
    archive = receiver(connection, "sec-incidents", "sec-changes")
    for notification in (Notification(incident(id="test-1"), Reason.TEST), with_changes):
        assert archive.deliver(notification).state is DeliveryState.DELIVERED
    for name in ("sec-incidents", "sec-changes"):
        node.call("POST", f"/{name}/_refresh")
        assert node.call("GET", f"/{name}/_count")["count"] == 1
    assert node.call("GET", "/_index_template/sec-incidents")["index_templates"]


@pytest.mark.parametrize(
    ("privileges", "missing"),
    [(("read", "view_index_metadata"), "create_index"), (("create_index", "read", "view_index_metadata"), "index")],
)
def test_an_archive_that_may_not_be_written_says_which_privilege_is_missing(
    door: Door, privileges: tuple[str, ...], missing: str
) -> None:
    connection = door.by_privileges(*privileges, names="denied-*")
    receipt = receiver(connection, f"denied-{missing.replace('_', '-')}").deliver(
        Notification(incident(id="inc-1"), Reason.OPENED)
    )
    assert receipt.state is DeliveryState.RETRY_LATER
    assert "403" in receipt.why and missing in receipt.why.partition("granted by")[2]


def receiver(connection: dict[str, Any], index: str, changes: str = "") -> ElasticsearchReceiver:
    return open_receiver(ElasticsearchConnection(**{**connection, "urls": tuple(connection["urls"])}), index, changes)
