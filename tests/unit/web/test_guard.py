"""Who is answered, and what every answer bears."""

from __future__ import annotations

from html import unescape

import pytest
from starlette.testclient import TestClient

from engine.errors import StoreError
from engine.store import Store
from engine.web.app import application
from tests.unit.cli.incidents import TOO_LARGE
from tests.unit.web.conftest import HOST, NOW, Fill

EVERYWHERE = ["/", f"/incidents/{TOO_LARGE.id}", f"/incidents/{TOO_LARGE.id}.json", "/healthz", "/nothing", "/static/copy.js"]


@pytest.mark.parametrize("address", EVERYWHERE)
def test_every_answer_bears_the_security_headers(client: TestClient, fill: Fill, address: str) -> None:
    fill(TOO_LARGE)
    for host in (HOST, "elsewhere.example"):
        headers = client.get(address, headers={"Host": host}).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("address", EVERYWHERE)
@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1", "127.0.0.1:8321", "127.0.0.1:8320.elsewhere.example", ""])
def test_another_host_is_refused_everywhere(client: TestClient, fill: Fill, address: str, host: str) -> None:
    fill(TOO_LARGE)
    refused = client.get(address, headers={"Host": host})
    assert refused.status_code == 400
    assert TOO_LARGE.title not in refused.text
    assert "web.public_url" in refused.text
    assert "elsewhere" not in refused.text


def test_two_hosts_are_no_host(client: TestClient) -> None:
    assert client.get("/", headers=[("Host", HOST), ("Host", "elsewhere.example")]).status_code == 400


@pytest.mark.parametrize("address", ["/nothing", "/incidents/inc-0", "/incidents/", "/static/../app.py", "/static/none.css"])
def test_what_is_not_there_has_a_page_that_says_so(client: TestClient, address: str) -> None:
    missing = client.get(address)
    assert missing.status_code == 404
    assert '<a href="/">To all incidents</a>' in missing.text


def test_an_unknown_incident_is_named_harmlessly(client: TestClient) -> None:
    missing = client.get("/incidents/%3Cscript%3E%E2%80%AE")
    assert "There is no incident &lt;script&gt;\\u202e." in missing.text
    unknown = client.get("/incidents/inc-0.json")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "no such incident"})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("address", EVERYWHERE[:4])
def test_nothing_can_be_changed(client: TestClient, address: str, method: str) -> None:
    refused = client.request(method, address)
    assert refused.status_code == 405
    assert "cannot be used that way" in refused.text


@pytest.mark.parametrize(
    "query", ["&".join(["label=a=b"] * 31), "&".join(["x=1"] * 31), "label=" + "a" * 1001, "x" * 1001 + "=1"]
)
def test_an_address_that_asks_for_too_much_is_refused_with_a_page(client: TestClient, fill: Fill, query: str) -> None:
    fill(TOO_LARGE)
    refused = client.get(f"/?{query}")
    assert refused.status_code == 400
    assert '<a href="/">To all incidents</a>' in refused.text
    assert len(refused.text) < 3000
    assert client.get("/?" + "&".join(f"label=a{n}=b" for n in range(29))).status_code == 200


def test_health_is_whether_the_store_can_be_read(client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok\n")

    def gone(*_: object) -> None:
        raise StoreError("the incident store cannot be used (disk I/O error)")

    for method in ("check_readable", "search", "revisions"):
        monkeypatch.setattr(Store, method, gone)
    for address in ("/", "/healthz", "/incidents/inc-0"):
        ill = client.get(address)
        assert ill.status_code == 503
        assert "disk I/O error" in ill.text


@pytest.mark.parametrize("became", ["removed", "replaced"])
def test_a_store_that_is_gone_is_not_shown_any_more(client: TestClient, store: Store, fill: Fill, became: str) -> None:
    fill(TOO_LARGE)
    assert store.path is not None
    store.path.rename(f"{store.path}.old")
    if became == "replaced":
        Store.open(f"sqlite:///{store.path}").close()
    for address in ("/", "/healthz", f"/incidents/{TOO_LARGE.id}", f"/incidents/{TOO_LARGE.id}.json"):
        gone = client.get(address)
        assert gone.status_code == 503
        assert f"the incident store was {became} while it was in use; start `tocsin serve` again" in unescape(gone.text)


def test_a_defect_shows_nothing_of_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "search", lambda *_: 1 // 0)
    app = application(store, frozenset({HOST}), lambda: NOW)
    broken = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False).get("/")
    assert broken.status_code == 500
    assert "defect of tocsin" in broken.text
    assert "Zero" not in broken.text
    assert "content-security-policy" in broken.headers
