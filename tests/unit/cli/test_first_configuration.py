"""A first configuration is right, whatever the answers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.first_configuration import FirstAnswers, first_configuration, source_of
from engine.cli.inputs import checks
from engine.config import examine
from engine.dsl.document import plain
from engine.dsl.reader import read
from engine.errors import UsageError


@pytest.mark.parametrize(
    ("place", "entry"),
    [
        ("/var/log/kafka", {"type": "files", "paths": ["/var/log/kafka"]}),
        ("logs/*: all.log", {"type": "files", "paths": ["logs/*: all.log"]}),
        ("docker", {"type": "docker"}),
        ("docker:shop,web", {"type": "docker", "projects": ["shop", "web"]}),
        ("kubernetes:kafka", {"type": "kubernetes", "namespaces": ["kafka"]}),
        ("journald:kafka", {"type": "journald", "units": ["kafka"]}),
        ("kafka:k1:9092,k2:9092/a,b", {"type": "kafka", "bootstrap_servers": "k1:9092,k2:9092", "topics": ["a", "b"]}),
        ("https://es:9200/logs-*", {"type": "elasticsearch", "url": "https://es:9200", "indices": ["logs-*"]}),
    ],
)
def test_where_the_logs_are(place: str, entry: dict[str, Any], tmp_path: Path) -> None:
    assert source_of(place) == entry
    path = tmp_path / "tocsin.yml"
    path.write_text(first_configuration(FirstAnswers((place,), "prod", "kafka-1:9092", (1, 2), "Asia/Seoul", "#ops")))
    examination = examine(path, checks())
    assert examination.findings() == ()
    assert examination.settings is not None
    assert [source.type for source in examination.settings.sources] == [entry["type"]]


@pytest.mark.parametrize("place", ["", " ", "kafka:k1:9092", "kafka:", "https://es:9200/", "https://a:b@es:9200/logs"])
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(UsageError):
        source_of(place)


@given(st.text(min_size=1, max_size=20), st.text(max_size=10), st.text(max_size=10))
def test_any_answer_is_written_so_that_it_is_read_again(path: str, cluster: str, channel: str) -> None:
    answers = FirstAnswers((f"./{path}",), cluster, slack=channel)
    document, report = read("tocsin.yml", first_configuration(answers).encode())
    assert report.all() == ()
    value = plain(document.root)
    assert isinstance(value, dict)
    assert value["sources"][0]["paths"] == [f"./{path}"]
    assert value["sources"][0].get("labels", {}).get("cluster", "") == cluster
