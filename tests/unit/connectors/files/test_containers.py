"""What runtimes write beside the logs of containers becomes their labels, and chooses what is read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.files import find
from connectors.files.containers import (
    container_labels,
    container_logs,
    container_source,
    described,
    docker_roots,
    is_selected,
)
from connectors.files.finding import chosen
from engine.errors import SourceDenied, SourceError
from tests.containers import (
    append,
    docker_row,
    id_of,
    link_pod_log,
    make_docker_log,
    make_pod_log,
    pod_row,
    rotate,
)
from tests.unit.connectors.files.triggers import LONG_S, Reader

AT = datetime(2022, 10, 5, 8, tzinfo=UTC)
COMPOSE = {"com.docker.compose.project": "shop", "com.docker.compose.service": "kafka", "maintainer": "x"}


def rows(*texts: str, layout: str = "docker") -> str:
    row = docker_row if layout == "docker" else pod_row
    return "".join(f"{row(text, AT)}\n" for text in texts)


def test_docker_describes_a_container_beside_its_log(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "shop-kafka-1", labels=COMPOSE)
    assert container_labels(str(log)) == {
        "container": "shop-kafka-1",
        "image": "apache/kafka:3.9.0",
        "compose_project": "shop",
        "compose_service": "kafka",
    }
    assert container_source(str(log)) == "docker/shop-kafka-1.log"
    assert container_source(f"{log}.2.gz") == "docker/shop-kafka-1.log.2.gz"


def test_the_pod_of_a_container_that_docker_runs_for_kubernetes_is_known(tmp_path: Path) -> None:
    labels = {
        "io.kubernetes.container.name": "kafka",
        "io.kubernetes.pod.name": "kafka-0",
        "io.kubernetes.pod.namespace": "prod",
    }
    log = make_docker_log(tmp_path, "k8s_kafka_kafka-0_prod_1_0", labels=labels)
    assert container_labels(str(log)) == {
        "container": "kafka",
        "image": "apache/kafka:3.9.0",
        "pod": "kafka-0",
        "namespace": "prod",
    }


@pytest.mark.parametrize("name", ["0.log", "12.log", "0.log.20221005-173002", "0.log.20221005-173002.gz"])
def test_the_path_of_a_pods_log_names_it(name: str) -> None:
    path = f"/var/log/pods/prod_kafka-0.zone_8f14e45f-ceea-467f-a0e6-0123456789ab/kafka/{name}"
    assert container_labels(path) == {"namespace": "prod", "pod": "kafka-0.zone", "container": "kafka"}
    assert container_source(path) == ""


def test_the_link_to_a_pods_log_names_it_too(tmp_path: Path) -> None:
    log = make_pod_log(tmp_path / "pods", "connect-6d4f", "connect", "etl")
    links = tmp_path / "containers"
    links.mkdir()
    assert container_labels(str(link_pod_log(links, log))) == container_labels(str(log))


@pytest.mark.parametrize(
    "path",
    [
        "-",
        "server.log",
        "/var/log/pods/a/b/0.log",
        f"/logs/{'0' * 64}-json.log",
        f"/x/{'0' * 64}/{'1' * 64}-json.log",
        "/0.log",
    ],
)
def test_other_files_are_no_containers(path: str) -> None:
    assert container_labels(path) == {}
    assert container_source(path) == ""


@pytest.mark.parametrize("description", ["{", "[]", '{"Name": 7}', ""])
def test_a_container_with_a_damaged_description_is_named_by_its_id(tmp_path: Path, description: str) -> None:
    log = make_docker_log(tmp_path, "kafka")
    (log.parent / "config.v2.json").write_text(description)
    assert container_labels(str(log)) == {"container": id_of("kafka")[:12]}
    assert container_source(str(log)) == ""
    with pytest.raises(SourceError, match=r"config\.v2\.json: is no description of a container"):
        described(str(log))


def test_a_container_without_a_description_is_named_by_its_id_and_that_is_no_error(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "kafka")
    (log.parent / "config.v2.json").unlink()
    assert described(str(log)) == {"container": id_of("kafka")[:12]}


def test_a_renamed_container_has_its_new_name(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "kafka")
    assert container_labels(str(log))["container"] == "kafka"
    description = log.parent / "config.v2.json"
    fields = json.loads(description.read_text())
    beside = description.with_name("next")
    beside.write_text(json.dumps({**fields, "Name": "/kafka-old"}))
    beside.replace(description)  # as Docker does
    assert container_labels(str(log))["container"] == "kafka-old"


def test_in_a_containers_folder_only_its_logs_are_read(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "kafka")
    append(log, rows("one"))
    rotated = rotate(log, 1)
    pod = make_pod_log(tmp_path, "kafka-0", "kafka")
    (pod.parent / "0.log.20221005-173002.tmp").write_bytes(gzip.compress(b"half")[:9])
    (tmp_path / "plain.log").write_text("one\n")
    assert sorted(find([str(tmp_path)]).files) == sorted(map(str, (log, rotated, pod, tmp_path / "plain.log")))
    assert container_logs(str(tmp_path), ["plain.log"]) is None


def test_a_driver_that_writes_no_text_is_told_with_what_to_do(tmp_path: Path) -> None:
    log = make_docker_log(tmp_path, "kafka")
    log.unlink()
    (log.parent / "local-logs").mkdir()
    (log.parent / "local-logs" / "container.log").write_bytes(b"\0\0\0\x10")
    (error,) = (error for error in find([str(tmp_path)]).errors if "driver" in str(error))
    assert "container kafka logs by Docker's driver `local`" in str(error)
    assert "docker logs kafka 2>&1 | tocsin scan -" in str(error)


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        ({}, ["kafka", "connect", "other"]),
        ({"container": ["k*"]}, ["kafka"]),
        ({"compose_project": ["shop"]}, ["kafka", "connect"]),
        ({"compose_project": ["shop"], "container": ["!connect"]}, ["kafka"]),
        ({"image": ["apache/*"], "compose_service": ["connect"]}, ["connect"]),
    ],
)
def test_containers_are_chosen_by_their_labels(tmp_path: Path, selection: Mapping[str, list[str]], selected: list[str]) -> None:
    for name in ("kafka", "connect"):
        make_docker_log(tmp_path, name, labels={**COMPOSE, "com.docker.compose.service": name})
    make_docker_log(tmp_path, "other")
    listing = chosen(find([str(tmp_path)]), selection)
    assert [container_labels(path)["container"] for path in listing.files] == sorted(selected, key=id_of)
    assert listing.errors == ()


def test_a_file_of_no_container_is_read_only_when_nothing_is_chosen() -> None:
    assert is_selected({}, {})
    assert not is_selected({}, {"pod": ["*"]})


def test_a_description_that_may_not_be_read_costs_the_name_or_with_a_selection_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_docker_log(tmp_path, "kafka")
    look = os.stat

    def denying(path: object, *arguments: object, **options: object) -> os.stat_result:
        if str(path).endswith("config.v2.json"):
            raise PermissionError(13, "Permission denied", path)
        return look(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "stat", denying)
    listing = chosen(find([str(tmp_path)]), {})
    assert listing.files == (str(log),)
    (error,) = listing.errors
    assert not isinstance(error, SourceDenied)
    assert "its container is named by its id" in str(error)
    listing = chosen(find([str(tmp_path)]), {"container": ["kafka"]})
    assert listing.files == ()
    assert [type(error) for error in listing.errors] == [SourceDenied]


def test_docker_is_where_its_daemons_say_or_usually_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    home, etc = tmp_path / "home", tmp_path / "etc"
    assert docker_roots("", home, tmp_path / "none")[0].endswith("docker/containers")
    rootless = home / ".local" / "share" / "docker" / "containers"
    rootless.mkdir(parents=True)
    etc.mkdir()
    (etc / "daemon.json").write_text(json.dumps({"data-root": str(tmp_path / "data")}))
    assert docker_roots("", home, etc) == (str(rootless),)
    (tmp_path / "data" / "containers").mkdir(parents=True)
    assert docker_roots("", home, etc) == (str(tmp_path / "data" / "containers"), str(rootless))
    assert docker_roots(str(tmp_path / "data")) == (str(tmp_path / "data" / "containers"),)
    assert docker_roots(str(tmp_path / "data" / "containers")) == (str(tmp_path / "data" / "containers"),)
    (etc / "daemon.json").write_text("{")
    assert docker_roots("", home, etc)[-1] == str(rootless)


@pytest.mark.parametrize("layout", ["docker", "pods"])
def test_a_log_that_is_rotated_and_compressed_while_it_is_read_is_read_to_its_end(tmp_path: Path, layout: str) -> None:
    log = make_docker_log(tmp_path, "kafka") if layout == "docker" else make_pod_log(tmp_path, "kafka-0", "kafka")
    append(log, rows("one", layout=layout))
    reader = Reader({"paths": [str(tmp_path)], "labels": {"cluster": "prod"}})
    lines = texts(reader)
    for number in range(1, 4):
        append(log, rows(f"before {number}", layout=layout))
        rotated = rotate(log, number)
        append(rotated, rows(f"late {number}", layout=layout))
        append(log, rows(f"after {number}", layout=layout))
        if number > 1:
            packed = rotated.with_name(f"{rotated.name}.gz")
            packed.write_bytes(gzip.compress(rotated.read_bytes()))
            rotated.unlink()
        reader.clocks.pass_by(LONG_S)
        lines += texts(reader)
    assert sorted(lines) == sorted(["one", *(f"{when} {n}" for n in (1, 2, 3) for when in ("before", "late", "after"))])
    assert reader.losses == []


def texts(reader: Reader) -> list[str]:
    """Return what the lines of the next batch hold, after checking whose they are."""
    lines: list[str] = []
    for chunk in reader.trigger():
        assert chunk.labels["container"] == "kafka"
        assert chunk.labels["cluster"] == "prod"
        assert chunk.source_id.startswith(("docker/kafka", "/"))
        lines += [_text(line.value.decode()) for line in chunk.lines()]
    return lines


def _text(row: str) -> str:
    return json.loads(row)["log"].rstrip("\n") if row.startswith("{") else row.partition(" F ")[2]


def test_a_container_that_is_made_anew_under_its_name_is_another_stream(tmp_path: Path) -> None:
    first = make_docker_log(tmp_path, "kafka")
    append(first, rows("one"))
    reader = Reader({"paths": [str(tmp_path)]})
    (chunk,) = reader.trigger()
    assert chunk.source_id == "docker/kafka.log"
    second = make_docker_log(tmp_path, "kafka-next")
    description = second.parent / "config.v2.json"
    description.write_text(description.read_text().replace("/kafka-next", "/kafka"))
    append(second, rows("two"))
    (chunk,) = reader.trigger()
    assert (chunk.source_id, chunk.labels["container"]) == ("docker/kafka.log~2", "kafka")


def test_labels_of_the_configuration_win(tmp_path: Path) -> None:
    append(make_docker_log(tmp_path, "kafka"), rows("one"))
    reader = Reader({"paths": [str(tmp_path)], "labels": {"container": "broker", "id": "{path:([0-9a-f]{12})[0-9a-f]*-json}"}})
    (chunk,) = reader.trigger()
    assert (chunk.labels["container"], chunk.labels["id"]) == ("broker", id_of("kafka")[:12])


def test_many_denied_logs_are_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        make_pod_log(tmp_path, f"kafka-{number}", "kafka")
    opening = os.open

    def denying(path: str, *arguments: object) -> int:
        if str(path).endswith("0.log"):
            raise PermissionError(13, "Permission denied", path)
        return opening(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denying)
    reader = Reader({"paths": [str(tmp_path)]})
    assert reader.trigger() == []
    ((name, error),) = reader.source.unreadable().items()
    assert (name, type(error)) == (str(tmp_path), SourceDenied)
    assert "5 files or folders may not be read" in str(error)
    (error,) = reader.source.check().errors
    assert "5 files or folders may not be read" in str(error)
