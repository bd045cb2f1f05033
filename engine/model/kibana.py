"""Addresses in Kibana, one function for each form that its versions know. Pure; nothing here asks a Kibana.

Sources, all elastic/kibana, below src/platform/plugins/shared. Discover's routes: discover/public/application/
discover_router.tsx. The state in an address: discover/common/app_locator_get_location.ts; until 7.8 Discover lay below
/app/kibana, since 8.15 the data view is named by `dataSource` instead of `index`, since 9.2 there are tabs. The redirect, since
7.14: share/common/url_service/locators/redirect/parse_search_params.ts; its `p` is JSON, in which a data view was named
`indexPatternId` until 8.4 (elastic/kibana#138423), and had to be a saved one (#138283). One document and those around it:
discover/public/application/doc/locator.ts and context/services/locator.ts; since 9.6 Discover opens one in place, by
`expandedDoc` in its state and in its locator: discover/public/application/main/utils/expanded_doc.ts. OpenSearch Dashboards:
src/plugins/data_explorer.

Everything behind `#` is read in the browser, and whoever opens a link may be anybody: times are absolute, and no state is a
hash that only one browser knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from engine.model.rison import Rison, rison

AD_HOC = "adhoc-tocsin"  # the id of a data view that stands in the address itself
AD_HOC_SINCE = (8, 5)  # the first version that opens such a data view
_PLAIN = "!(),:'@$*-_.~/"  # what rison needs, and a fragment may hold as it is

MajorMinor = tuple[int, int]


class LogView(Struct, frozen=True):
    """Logs as Discover shows them: from when to when, narrowed by a query (`kql`, or `esql` where that is the language).

    `data_view` is the id of a saved data view; without one `pattern` names the indices. `saved_search` is the id of a saved
    search, which has a data view, columns and an order of its own; empty without one. `title` names the tab. `opened` is the
    index and id of the document that 9.6 and later open beside the logs, whatever the query selects; None without one.
    """

    start: datetime
    end: datetime
    kql: str = ""
    esql: str = ""
    data_view: str = ""
    pattern: str = ""
    time_field: str = "@timestamp"
    columns: tuple[str, ...] = ()
    title: str = ""
    saved_search: str = ""
    opened: tuple[str, str] | None = None


def legacy_discover(view: LogView) -> str:
    """Return Discover of 7.0 to 7.8."""
    return f"/app/kibana#/discover?{_state(view, {'index': view.data_view})}"


def index_discover(view: LogView) -> str:
    """Return Discover of 7.9 to 8.14, and of OpenSearch Dashboards until 2.10."""
    return f"{_route(view)}?{_state(view, {'index': view.data_view})}"


def data_view_discover(view: LogView) -> str:
    """Return Discover of 8.15 and later."""
    return f"{_route(view)}?{_state(view, {'dataSource': {'dataViewId': view.data_view, 'type': 'dataView'}})}"


def tab_discover(view: LogView) -> str:
    """Return Discover of 9.2 and later in a tab of its own: the reader's other tabs stay as they are."""
    return f"{data_view_discover(view)}&_tab={_encoded(rison({'tabId': 'new', 'tabLabel': view.title}))}"


def esql_discover(view: LogView, version: MajorMinor) -> str:
    """Return Discover of 8.15 and later with a query of ES|QL, which names its indices itself."""
    state: dict[str, Rison] = {"dataSource": {"type": "esql"}, "query": {"esql": view.esql}}
    address = f"/app/discover#/?_g={_encoded(rison(_globals(view)))}&_a={_encoded(rison(state))}"
    return f"{address}&_tab={_encoded(rison({'tabId': 'new', 'tabLabel': view.title}))}" if version >= (9, 2) else address


def locator(view: LogView, version: MajorMinor) -> str:
    """Return Discover of 7.14 and later by the one form whose parameters Kibana itself brings up to date from `version`."""
    params: dict[str, Any] = {
        **_data_view(view, version),
        "timeRange": {"from": _instant(view.start), "to": _instant(view.end)},
        "refreshInterval": {"pause": True, "value": 0},
        "useHash": False,
    }
    if view.kql:
        params["query"] = {"language": "kuery", "query": view.kql}
    if view.columns and not view.saved_search:
        params["columns"] = list(view.columns)
    if view.opened is not None:
        params["expandedDoc"] = _expanded(*view.opened)
    if version >= (9, 2):
        params["tab"] = {"id": "new", "label": view.title}
    return _redirect("DISCOVER_APP_LOCATOR", version, params)


def document(data_view: str, index: str, id: str) -> str:
    """Return one document of 7.9 and later: `index` is the concrete one that holds it."""
    return f"/app/discover#/doc/{quote(data_view, '')}/{quote(index, '')}?id={quote(id, '')}"


def surrounding(data_view: str, id: str, columns: tuple[str, ...] = ()) -> str:
    """Return the documents around one, of 7.9 and later."""
    state: dict[str, Rison] = {"columns": list(columns), "predecessorCount": 20, "successorCount": 20}
    return f"/app/discover#/context/{quote(data_view, '')}/{quote(id, '')}?_g=(filters:!())&_a={_encoded(rison(state))}"


def document_locator(view: LogView, version: MajorMinor, index: str, id: str) -> str:
    """Return one document of 8.5 and later that no saved data view is needed for."""
    params = {"index": _spec(view), "rowId": id, "rowIndex": index, "referrer": ""}
    return _redirect("DISCOVER_SINGLE_DOC_LOCATOR", version, params)


def surrounding_locator(view: LogView, version: MajorMinor, id: str) -> str:
    """Return the documents around one, of 8.5 and later, that no saved data view is needed for."""
    params = {"index": _spec(view), "rowId": id, "columns": list(view.columns), "referrer": ""}
    return _redirect("DISCOVER_CONTEXT_APP_LOCATOR", version, params)


def opensearch_discover(view: LogView, tenant: str) -> str:
    """Return Discover of OpenSearch Dashboards 2.11 and later."""
    state: dict[str, Rison] = {
        "discover": {"columns": list(view.columns), "isDirty": False, "sort": []},
        "metadata": {"indexPattern": view.data_view, "view": "discover"},
    }
    query: dict[str, Rison] = {"filters": [], "query": {"language": "kuery", "query": view.kql}}
    of_tenant = f"?security_tenant={quote(tenant, '')}" if tenant else ""
    parts = {"_g": _globals(view), "_a": state, "_q": query}
    return (
        f"/app/data-explorer/discover{of_tenant}#?{'&'.join(f'{key}={_encoded(rison(part))}' for key, part in parts.items())}"
    )


def _route(view: LogView) -> str:
    return f"/app/discover#/view/{quote(view.saved_search, '')}" if view.saved_search else "/app/discover#/"


def _state(view: LogView, source: Mapping[str, Rison]) -> str:
    state: dict[str, Rison] = {
        "columns": list(view.columns),
        "filters": [],
        **source,
        "interval": "auto",
        "query": {"language": "kuery", "query": view.kql},
        "sort": [[view.time_field, "desc"]],
    }
    if not view.columns:
        del state["columns"]
    if view.saved_search:
        state = {name: state[name] for name in ("filters", "query")}
    if view.opened is not None:
        state["expandedDoc"] = _expanded(*view.opened)
    return f"_g={_encoded(rison(_globals(view)))}&_a={_encoded(rison(state))}"


def _globals(view: LogView) -> dict[str, Rison]:
    return {
        "filters": [],
        "refreshInterval": {"pause": True, "value": 0},
        "time": {"from": _instant(view.start), "to": _instant(view.end)},
    }


def _expanded(index: str, id: str) -> dict[str, str]:
    return {"id": id, "index": index}


def _data_view(view: LogView, version: MajorMinor) -> Mapping[str, Any]:
    if view.saved_search:
        return {"savedSearchId": view.saved_search}
    if version < AD_HOC_SINCE:
        return {"indexPatternId": view.data_view}
    return {"dataViewId": view.data_view} if view.data_view else {"dataViewSpec": _spec(view)}


def _spec(view: LogView) -> Mapping[str, Any] | str:
    """Return the data view as the locators for one document take it: the id of a saved one, else one to be made for it."""
    if view.data_view:
        return view.data_view
    return {"id": AD_HOC, "title": view.pattern, "timeFieldName": view.time_field, "allowNoIndex": True}


def _redirect(name: str, version: MajorMinor, params: Mapping[str, Any]) -> str:
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":"))
    return f"/app/r?l={name}&v={version[0]}.{version[1]}.0&p={quote(text, '')}"


def _encoded(text: str) -> str:
    return quote(text, _PLAIN)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
