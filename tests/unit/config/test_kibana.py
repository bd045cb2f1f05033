"""The `kibana` section of tocsin.yml."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import load
from engine.errors import ConfigError


def test_the_logs_in_kibana_are_those_that_sources_read_unless_it_says_otherwise(tmp_path: Path) -> None:
    source = "  - {type: elasticsearch, url: https://es, indices: [%s]}\n"
    text = "sources:\n" + source % "logs-a*, logs-b" + source % "logs-b" + "kibana: {url: https://k%s}\n"
    for more, pattern in (("", "logs-a*,logs-b"), (", indices: [other-*]", "other-*")):
        (path := tmp_path / "tocsin.yml").write_text(text % more)
        kibana = load(path).links.kibana
        assert kibana is not None and (kibana.pattern, kibana.data_view) == (pattern, "")


@pytest.mark.parametrize(
    ("more", "is_right"),
    [
        ("", True),
        (", version: '7.9', data_view: v", True),
        (", version: '7.8', data_view: v", False),
        (", style: esql", False),
        (", style: opensearch, version: '2.19', data_view: v", False),
    ],
)
def test_a_saved_search_is_opened_by_the_forms_that_can(tmp_path: Path, more: str, is_right: bool) -> None:
    text = "sources: [{type: files, paths: [a.log]}]\nkibana: {url: https://k, indices: [logs-*], saved_search: s1%s}\n"
    (path := tmp_path / "tocsin.yml").write_text(text % more)
    if is_right:
        kibana = load(path).links.kibana
        assert kibana is not None and kibana.saved_search == "s1"
    else:
        with pytest.raises(ConfigError, match="cannot open a saved search"):
            load(path)


@pytest.mark.parametrize(
    ("more", "is_right"),
    [
        ("indices: [logs-*]", True),
        ("indices: [logs-*], version: '8.5'", True),
        ("indices: [logs-*], version: '8.4'", False),
        ("indices: [logs-*], version: '7.17', style: locator", False),
        ("data_view: v, version: '7.17'", True),
        ("indices: [logs-*], style: discover", False),
    ],
)
def test_a_saved_data_view_is_named_where_links_need_one(tmp_path: Path, more: str, is_right: bool) -> None:
    (path := tmp_path / "tocsin.yml").write_text(
        f"sources: [{{type: files, paths: [a.log]}}]\nkibana: {{url: https://k, {more}}}\n"
    )
    if is_right:
        assert load(path).links.kibana is not None
    else:
        with pytest.raises(ConfigError, match="links of this form need `data_view`"):
            load(path)
