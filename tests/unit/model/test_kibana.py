"""Every form of address that the versions of Kibana know, character by character."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from engine.model import kibana
from engine.model.kibana import LogView

VIEW = LogView(
    datetime(2023, 2, 3, 2, 3, 2, 285000, tzinfo=UTC),
    datetime(2023, 2, 3, 2, 7, tzinfo=UTC),
    'host.name: "b\'1 ü"',
    data_view="logs 1",
    pattern="logs-*,filebeat-*",
    columns=("log.level", "message"),
    title="inc-1",
)
TIME = "time:(from:'2023-02-03T02:03:02.285Z',to:'2023-02-03T02:07:00.000Z')"
G = f"_g=(filters:!(),refreshInterval:(pause:!t,value:0),{TIME})"
QUERY = "query:(language:kuery,query:'host.name:%20%22b!'1%20%C3%BC%22')"
A = ("_a=(columns:!('log.level',message),filters:!(),", f",interval:auto,{QUERY},sort:!(!('@timestamp',desc)))")
INDEX = "index:'logs%201'"
SOURCE = "dataSource:(dataViewId:'logs%201',type:dataView)"


def test_discover_until_7_8() -> None:
    assert kibana.legacy_discover(VIEW) == f"/app/kibana#/discover?{G}&{INDEX.join(A)}"


def test_discover_from_7_9_to_8_14() -> None:
    assert kibana.index_discover(VIEW) == f"/app/discover#/?{G}&{INDEX.join(A)}"


def test_discover_from_8_15() -> None:
    assert kibana.data_view_discover(VIEW) == f"/app/discover#/?{G}&{SOURCE.join(A)}"


def test_discover_from_9_2_has_a_tab_of_its_own() -> None:
    assert kibana.tab_discover(VIEW) == f"/app/discover#/?{G}&{SOURCE.join(A)}&_tab=(tabId:new,tabLabel:'inc-1')"


def test_a_document_is_opened_beside_the_logs_from_9_6() -> None:
    view = replace(VIEW, opened=(".ds-logs-2026.01.01-000001", "a'b/ü"))
    document = ",expandedDoc:(id:'a!'b/%C3%BC',index:'.ds-logs-2026.01.01-000001'))&_tab="
    saved = replace(view, saved_search="s")
    for each in (view, saved):
        plain = kibana.tab_discover(replace(each, opened=None))
        assert kibana.tab_discover(each) == plain.replace(")&_tab=", document)
        assert params(kibana.locator(each, (9, 6)))["expandedDoc"] == {"id": "a'b/ü", "index": ".ds-logs-2026.01.01-000001"}


def test_a_saved_search_brings_its_data_view_and_its_columns() -> None:
    view = replace(VIEW, saved_search="my search/1")
    address = f"/app/discover#/view/my%20search%2F1?{G}&_a=(filters:!(),{QUERY})"
    assert kibana.index_discover(view) == kibana.data_view_discover(view) == address
    assert kibana.tab_discover(view) == f"{address}&_tab=(tabId:new,tabLabel:'inc-1')"
    told = params(kibana.locator(view, (9, 1)))
    assert told["savedSearchId"] == "my search/1"
    assert not {"dataViewId", "dataViewSpec", "columns"} & told.keys()


def test_esql_names_its_indices_itself() -> None:
    view = replace(VIEW, esql='FROM logs-* | WHERE a == "1"')
    query = "FROM%20logs-*%20%7C%20WHERE%20a%20%3D%3D%20%221%22"
    address = f"/app/discover#/?{G}&_a=(dataSource:(type:esql),query:(esql:'{query}'))"
    assert kibana.esql_discover(view, (8, 15)) == address
    assert kibana.esql_discover(view, (9, 2)) == f"{address}&_tab=(tabId:new,tabLabel:'inc-1')"


@pytest.mark.parametrize("version", [(7, 14), (7, 17), (8, 4), (8, 5), (8, 15), (9, 1), (9, 2), (9, 6)])
def test_the_redirect_bears_json_that_kibana_migrates_from_its_version(version: tuple[int, int]) -> None:
    address = kibana.locator(VIEW, version)
    start = f"/app/r?l=DISCOVER_APP_LOCATOR&v={version[0]}.{version[1]}.0&p="
    named = "dataViewId" if version >= (8, 5) else "indexPatternId"
    assert address.startswith(f"{start}%7B%22{named}%22%3A%22logs%201%22")
    tab = {"tab": {"id": "new", "label": "inc-1"}} if version >= (9, 2) else {}
    assert params(address) == {
        named: "logs 1",
        "timeRange": {"from": "2023-02-03T02:03:02.285Z", "to": "2023-02-03T02:07:00.000Z"},
        "refreshInterval": {"pause": True, "value": 0},
        "useHash": False,
        "query": {"language": "kuery", "query": 'host.name: "b\'1 ü"'},
        "columns": ["log.level", "message"],
        **tab,
    }


def test_the_redirect_makes_a_data_view_where_there_is_none() -> None:
    told = params(kibana.locator(replace(VIEW, data_view="", kql="", columns=()), (8, 15)))
    spec = {"id": "adhoc-tocsin", "title": "logs-*,filebeat-*", "timeFieldName": "@timestamp", "allowNoIndex": True}
    assert told["dataViewSpec"] == spec
    assert not {"dataViewId", "query", "columns"} & told.keys()


def test_one_document_and_those_around_it_of_a_saved_data_view() -> None:
    index, id_ = ".ds-logs-kafka-2026.11.26-000001", "a/b+c=?&#"
    assert kibana.document("logs 1", index, id_) == f"/app/discover#/doc/logs%201/{index}?id=a%2Fb%2Bc%3D%3F%26%23"
    around = "_g=(filters:!())&_a=(columns:!(message),predecessorCount:20,successorCount:20)"
    assert kibana.surrounding("logs 1", "a/b", ("message",)) == f"/app/discover#/context/logs%201/a%2Fb?{around}"


def test_one_document_and_those_around_it_without_a_saved_data_view() -> None:
    view = replace(VIEW, data_view="")
    one, around = kibana.document_locator(view, (8, 5), "idx", "a&b"), kibana.surrounding_locator(view, (9, 5), "a&b")
    assert one.startswith("/app/r?l=DISCOVER_SINGLE_DOC_LOCATOR&v=8.5.0&p=")
    assert around.startswith("/app/r?l=DISCOVER_CONTEXT_APP_LOCATOR&v=9.5.0&p=")
    spec = {"id": "adhoc-tocsin", "title": "logs-*,filebeat-*", "timeFieldName": "@timestamp", "allowNoIndex": True}
    assert params(one) == {"index": spec, "rowId": "a&b", "rowIndex": "idx", "referrer": ""}
    assert params(around) == {"index": spec, "rowId": "a&b", "columns": ["log.level", "message"], "referrer": ""}


def test_opensearch_dashboards() -> None:
    a = "_a=(discover:(columns:!('log.level',message),isDirty:!f,sort:!()),metadata:(indexPattern:'logs%201',view:discover))"
    q = "_q=(filters:!(),query:(language:kuery,query:'host.name:%20%22b!'1%20%C3%BC%22'))"
    assert kibana.opensearch_discover(VIEW, "") == f"/app/data-explorer/discover#?{G}&{a}&{q}"
    assert kibana.opensearch_discover(VIEW, "my ops").startswith("/app/data-explorer/discover?security_tenant=my%20ops#?_g=(")


def params(address: str) -> dict[str, object]:
    """Return what Kibana parses of a redirect."""
    told: dict[str, object] = json.loads(parse_qs(urlsplit(address).query, keep_blank_values=True)["p"][0])
    return told
