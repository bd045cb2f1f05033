"""What leads on from an incident and its lines: its page, and Kibana in the form that its version knows."""

from __future__ import annotations

import json
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.model.links import LONGEST, NO_LINKS, STYLES, Kibana, LineLinks, Link, LinkTargets
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

LINE = replace(TOO_LARGE.evidence[0], origin="elasticsearch:.ds-logs-1/a%2Fb")
PLAIN = replace(LINE, origin="", source_id="/var/log/kafka/server.log")


@pytest.mark.parametrize(
    ("version", "style", "start"),
    [
        ((7, 8), "auto", "https://k/app/kibana#/discover?_g=("),
        ((7, 9), "auto", "https://k/app/discover#/?_g=("),
        ((7, 13), "auto", "https://k/app/discover#/?_g=("),
        ((7, 14), "auto", "https://k/app/r?l=DISCOVER_APP_LOCATOR&v=7.14.0&p="),
        ((8, 15), "auto", "https://k/app/r?l=DISCOVER_APP_LOCATOR&v=8.15.0&p="),
        ((9, 6), "auto", "https://k/app/r?l=DISCOVER_APP_LOCATOR&v=9.6.0&p="),
        ((8, 14), "discover", "https://k/app/discover#/?_g=("),
        ((9, 5), "discover", "https://k/app/discover#/?_g=("),
        ((9, 5), "esql", "https://k/app/discover#/?_g=("),
        ((2, 19), "opensearch", "https://k/app/data-explorer/discover#?_g=("),
        ((2, 9), "opensearch", "https://k/app/discover#/?_g=("),
    ],
)
def test_the_form_is_that_of_the_version_and_the_style(version: tuple[int, int], style: str, start: str) -> None:
    kibana = Kibana("https://k", "v", version, pattern="logs-*", style=style)
    assert kibana.address(TOO_LARGE).startswith(start)


def test_an_incident_is_shown_from_two_minutes_before_it_to_two_minutes_after_its_end() -> None:
    kibana = Kibana("https://k/base", "v", space="my ops", fields={"broker": "labels.broker", "cluster": "orchestrator"})
    told = incident(labels={"cluster": "default", "broker": "1", "topic": "a"}, resolved_at=AT + timedelta(hours=1))
    address = kibana.address(told)
    assert address.startswith("https://k/base/s/my%20ops/app/r?")
    params = json.loads(parse_qs(urlsplit(address).query)["p"][0])
    assert params["timeRange"] == {"from": "2023-02-03T02:03:02.285Z", "to": "2023-02-03T03:07:02.285Z"}
    assert params["query"]["query"] == kibana.query(told) == 'labels.broker: "1" and orchestrator: "default"'
    assert kibana.address(incident(first_seen=None, last_seen=None)) == ""


def test_a_line_from_elasticsearch_leads_to_its_document_and_to_those_around_it() -> None:
    links = Kibana("https://k", "v").of_line(LINE, is_dated=False)
    assert links.links == (
        Link("line", "https://k/app/discover#/doc/v/.ds-logs-1?id=a%2Fb"),
        Link(
            "around",
            "https://k/app/discover#/context/v/a%2Fb?_g=(filters:!())&_a=(columns:!(message),predecessorCount:20,successorCount:20)",
        ),
    )
    assert links.query == '_id: "a/b" and _index: ".ds-logs-1"'


@pytest.mark.parametrize("named", [{"data_view": "v"}, {"pattern": "logs-*"}])
def test_from_9_6_the_document_of_a_line_is_opened_among_the_logs_of_its_index(named: dict[str, str]) -> None:
    kibana = Kibana("https://k", version=(9, 6), **named)
    line, around = kibana.of_line(LINE, is_dated=True).links
    params = json.loads(parse_qs(urlsplit(line.url).query)["p"][0])
    assert params["expandedDoc"] == {"id": "a/b", "index": ".ds-logs-1"}
    assert params["query"]["query"] == '_index: ".ds-logs-1"'
    assert params["timeRange"] == {"from": "2023-02-03T02:03:02.285Z", "to": "2023-02-03T02:07:02.285Z"}
    before = replace(kibana, version=(9, 5))
    assert around.url.replace("v=9.6.0", "v=9.5.0") == before.of_line(LINE, is_dated=True).links[1].url
    undated, esql = kibana.of_line(LINE, is_dated=False), replace(kibana, style="esql").of_line(LINE, is_dated=True)
    assert "expandedDoc" not in undated.links[0].url + esql.links[0].url + before.of_line(LINE, is_dated=True).links[0].url


def test_a_query_holds_an_id_with_quotes_as_it_is() -> None:
    quoted = Kibana("https://k", "v").of_line(replace(LINE, origin="elasticsearch:logs-1/a%22b%5C"), is_dated=False)
    assert quoted.query == r'_id: "a\"b\\" and _index: "logs-1"'


def test_without_a_saved_data_view_it_does_so_where_kibana_can_and_is_sought_by_its_id_elsewhere() -> None:
    one, around = Kibana("https://k", pattern="logs-*").of_line(LINE, is_dated=True).links
    assert "l=DISCOVER_SINGLE_DOC_LOCATOR" in one.url and "l=DISCOVER_CONTEXT_APP_LOCATOR" in around.url
    old, other = Kibana("https://k", version=(8, 4), pattern="logs-*"), Kibana("https://k", "v", (2, 19), style="opensearch")
    for kibana in (old, other):
        (sought,) = kibana.of_line(LINE, is_dated=True).links
        assert '_id: "a/b"' in unquote(sought.url).replace("\\", "")


def test_another_line_leads_to_the_logs_of_its_source_at_its_time() -> None:
    kibana = Kibana("https://k", "v")
    ((link,), query) = (kibana.of_line(PLAIN, is_dated=True).links, kibana.of_line(PLAIN, is_dated=True).query)
    params = json.loads(parse_qs(urlsplit(link.url).query)["p"][0])
    assert params["timeRange"] == {"from": "2023-02-03T02:03:02.285Z", "to": "2023-02-03T02:07:02.285Z"}
    assert params["query"]["query"] == query == 'log.file.path: "/var/log/kafka/server.log"'
    assert kibana.of_line(PLAIN, is_dated=False) == LineLinks((), query)


def test_an_address_that_would_be_too_long_loses_its_columns_then_what_narrows_it_then_shows_one_document() -> None:
    columns = tuple(f"column-{n}" for n in range(300))
    assert "columns" not in Kibana("https://k", "v", columns=columns).address(TOO_LARGE)
    wide = Kibana("https://k", "v", fields={"topic": "topic"}, columns=columns)
    long = incident(labels={"topic": "t" * 5000}, evidence=(LINE,))
    assert "query" not in wide.address(long) and wide.address(long)
    huge = Kibana(f"https://k/{'p' * 2800}", "v", fields={"topic": "topic"}, columns=columns)
    assert "/app/discover#/doc/v/.ds-logs-1?id=" in huge.address(long)
    assert Kibana(f"https://k/{'p' * 3000}", "v").address(long) == ""


@given(
    st.sampled_from(STYLES),
    st.sampled_from([(7, 8), (7, 13), (8, 4), (8, 15), (9, 5), (9, 6), (2, 11)]),
    st.dictionaries(st.sampled_from(["topic", "broker", "group"]), st.text(max_size=2000)),
    st.text(max_size=400),
)
def test_whatever_was_captured_the_address_is_short_and_of_plain_characters(
    style: str, version: tuple[int, int], labels: dict[str, str], id: str
) -> None:
    fields = {"topic": "kafka.topic", "broker": "broker", "group": "group"}
    kibana = Kibana("https://k", "v", version, fields=fields, pattern="logs-*", style=style)
    line = replace(LINE, source_id=id or "x")
    told = incident(labels=labels, evidence=(line, replace(line, origin="")))
    urls = [link.url for event in told.evidence for link in kibana.of_line(event, is_dated=True).links]
    for url in (kibana.address(told), *urls):
        assert len(url) <= LONGEST and url.isascii() and url.isprintable()
        assert not set(url) & set(' "<>\\^`{|}')


def test_a_page_is_below_the_public_address_and_a_part_leads_to_the_whole() -> None:
    links = LinkTargets("https://tocsin.example", Kibana("https://k", "v"))
    assert [link.kind for link in links.of(TOO_LARGE)] == ["incident", "kibana"]
    assert links.of(TOO_LARGE)[0].url == "https://tocsin.example/incidents/inc-0123456789"
    assert links.of(incident(status="merged", merged_into="inc-2"))[0].url == "https://tocsin.example/incidents/inc-2"
    assert NO_LINKS.of(TOO_LARGE) == () and NO_LINKS.of_lines(TOO_LARGE) == {} and NO_LINKS.query(TOO_LARGE) == ""


def test_lines_that_nothing_leads_on_from_are_left_out() -> None:
    nowhere = replace(PLAIN, event_id="e2", source_id="stdin")
    told = incident(first_seen=None, evidence=(replace(LINE, event_id="e1"), nowhere))
    assert list(LinkTargets("", Kibana("https://k", "v")).of_lines(told)) == ["e1"]
