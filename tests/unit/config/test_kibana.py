"""The `kibana` section of tocsin.yml."""

from __future__ import annotations

from pathlib import Path

from engine.config import load


def test_the_logs_in_kibana_are_those_that_sources_read_unless_it_says_otherwise(tmp_path: Path) -> None:
    source = "  - {type: elasticsearch, url: https://es, indices: [%s]}\n"
    text = "sources:\n" + source % "logs-a*, logs-b" + source % "logs-b" + "kibana: {url: https://k%s}\n"
    for more, pattern in (("", "logs-a*,logs-b"), (", indices: [other-*]", "other-*")):
        (path := tmp_path / "tocsin.yml").write_text(text % more)
        kibana = load(path).links.kibana
        assert kibana is not None and (kibana.pattern, kibana.data_view) == (pattern, "")
