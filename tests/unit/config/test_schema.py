"""Sources that are no files, and the help for keys in the wrong place and for tabs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.inputs import checks
from engine.config import load
from engine.errors import ConfigError
from tests.unit.config.test_settings import CHECKS, written

ELASTICSEARCH = """
sources:
  - type: elasticsearch
    url: https://es.example:9200
    api_key: file:key
    indices: ["logs-kafka*", "cluster2:logs-*"]
    labels: {cluster: prod, namespace: "{field:kubernetes.namespace}"}
    timezone: Asia/Seoul
    start: 2h
    query: {term: {event.dataset: kafka.log}}
    read_by: ingested
    overlap: 10m
"""


def test_an_elasticsearch_source_has_its_cluster_indices_and_query(tmp_path: Path) -> None:
    (source,) = load(written(tmp_path, ELASTICSEARCH), CHECKS).sources
    assert source.indices == ("logs-kafka*", "cluster2:logs-*")
    assert source.connection["urls"] == ["https://es.example:9200"]
    assert source.connection["api_key"] == f"file:{tmp_path}/key"
    assert source.query == {"term": {"event.dataset": "kafka.log"}}
    assert (source.read_by, source.overlap_s, source.start, source.scope) == ("ingested", 600.0, "2h", "prod")


@pytest.mark.parametrize(
    ("was", "becomes", "finding"),
    [
        ("api_key: file:key", "api_key: c2VjcmV0", "must not"),
        ("https://es.example:9200", "http://es.example:9200", "es.example"),
        ('["logs-kafka*", "cluster2:logs-*"]', '["logs kafka"]', "`logs kafka` is not the name of an index"),
        ('["logs-kafka*", "cluster2:logs-*"]', '["a,b"]', "`a,b` is not the name of an index"),
        ("read_by: ingested", "read_by: cursor", "`cursor` is not a way to read"),
        ("indices:", "index:", "`sources[0].indices` is missing"),
    ],
)
def test_what_is_wrong_with_an_elasticsearch_source_is_said(tmp_path: Path, was: str, becomes: str, finding: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(finding)) as caught:
        load(written(tmp_path, ELASTICSEARCH.replace(was, becomes)), CHECKS)
    assert "c2VjcmV0" not in str(caught.value)


CONNECT = """
sources:
  - type: connect
    url: [https://connect-1.example:8083/, https://connect-2.example:8083]
    user: tocsin
    password: file:password
    ca: file:ca.pem
    every: 10s
    record: asked.log
    labels: {cluster: prod}
clusters: {}
"""


def test_a_connect_source_has_its_workers_and_they_are_the_address_in_fixes(tmp_path: Path) -> None:
    settings = load(written(tmp_path, CONNECT), CHECKS)
    (source,) = settings.sources
    assert source.connection["urls"] == ["https://connect-1.example:8083/", "https://connect-2.example:8083"]
    assert (source.connection["password"], source.connection["ca"]) == (f"file:{tmp_path}/password", f"file:{tmp_path}/ca.pem")
    assert (source.every_s, source.record, source.scope) == (10.0, str(tmp_path / "asked.log"), "prod")
    assert settings.context == {"prod.connect_url": "https://connect-1.example:8083"}
    other = CONNECT.replace("clusters: {}", "clusters: {prod: {connect_url: 'http://connect:1'}}")
    assert load(written(tmp_path, other), CHECKS).context == {"prod.connect_url": "http://connect:1"}


def test_a_kafka_cluster_has_its_brokers_and_options_and_they_are_the_bootstrap_in_fixes(tmp_path: Path) -> None:
    text = (
        "sources:\n  - {type: kafka-cluster, bootstrap_servers: 'k1:9092,k2:9092', options: {sasl.password: 'file:p'}, labels:"
        " {cluster: prod}}\n"
    )
    settings = load(written(tmp_path, text), CHECKS)
    (source,) = settings.sources
    assert source.connection == {"bootstrap_servers": "k1:9092,k2:9092", "options": {"sasl.password": f"file:{tmp_path}/p"}}
    assert (source.every_s, source.record) == (30.0, "")
    assert settings.context == {"prod.bootstrap": "k1:9092,k2:9092"}
    with_login = text.replace("{sasl.password", "{security.protocol: sasl_ssl, sasl.password")
    assert load(written(tmp_path, with_login), CHECKS).context == settings.context | {"prod.signs_in": "yes"}
    with pytest.raises(ConfigError, match=re.escape("`linger.ms` is no option of a client that asks")):
        load(written(tmp_path, text.replace("sasl.password: 'file:p'", "linger.ms: '5'")), checks())


@pytest.mark.parametrize(
    ("was", "becomes", "finding"),
    [
        ("password: file:password", "password: c2VjcmV0", "must not"),
        ("    password: file:password\n", "", "needs both `user` and `password`"),
        ("https://connect-2", "http://connect-2", "is not an address that may be sent a secret"),
        ("every: 10s", "every: 1s", "asking more often than every 5 s is a load"),
        ("every: 10s", "start: 1h", "a source of type connect has no past to start in"),
        ("url:", "urls:", "`sources[0].url` is missing"),
    ],
)
def test_what_is_wrong_with_a_connect_source_is_said(tmp_path: Path, was: str, becomes: str, finding: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(finding)) as caught:
        load(written(tmp_path, CONNECT.replace(was, becomes)), CHECKS)
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "help"),
    [
        ("conect_url: http://x", "did you mean `connect_url` below `clusters`?"),
        ("bootstrap: a:9092", "did you mean `bootstrap` below `clusters`?"),
        ("roster: 1,2,3", "did you mean `brokers` below `clusters`?"),
        ("recievers: []", "did you mean `receivers`?"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_where_it_belongs(line: str, help: str, tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(f"sources: [{{type: files, paths: [a.log]}}]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "TOC201"
    assert diagnostic.help.startswith(help)


@pytest.mark.parametrize("text", ["sources:\n\t- type: files\n", "sources:\n  -\ttype: files\n\tpaths: [a]\n"])
def test_a_tab_is_called_a_tab(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert [(d.code, d.message, d.help) for d in caught.value.diagnostics] == [
        ("TOC103", "a tab indents this line", "YAML is indented with spaces only")
    ]
