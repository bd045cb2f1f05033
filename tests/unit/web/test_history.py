"""What the page of an incident shows of other incidents and alerts of the store."""

from __future__ import annotations

import re
from datetime import timedelta

from starlette.testclient import TestClient

from engine.model.acts import Act, ActKind
from engine.model.incidents import Alert, AlertKey, Verdict
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, TOO_LARGE, incident
from tests.unit.web.conftest import NOW, Fill
from tests.unit.web.test_pages import ADDRESS, HOSTILE, Tags


def test_the_page_has_earlier_incidents_of_its_rule_and_what_people_wrote(client: TestClient, store: Store, fill: Fill) -> None:
    long_ago = AT - timedelta(days=3)
    earlier = incident(id="inc-1", title=HOSTILE, first_seen=long_ago, status="resolved", why=HOSTILE, alerts=(TOO_LARGE.key,))
    fill(earlier, *(incident(id=f"inc-1{n}", status="resolved") for n in range(4)), TOO_LARGE)
    assert "Happened before" not in client.get("/incidents/inc-1").text
    for n, (kind, text) in enumerate(((ActKind.NOTE, "raised the\nlimit"), (ActKind.NOT_USEFUL, HOSTILE))):
        store.acts().record(Act(str(n), "inc-1", kind, "mina", "page", NOW - timedelta(hours=2), text))
    page = client.get(ADDRESS).text
    Tags(page)
    assert "<script>alert" not in page
    hint, section = page[page.index('class="before"') :].split('<h2 id="past"')
    assert re.search(r">Happened 5 times before</a>.*mina, .*2 h ago.*: called not useful: &lt;script&gt;", hint, re.DOTALL)
    order = ['<a class="title" href="/incidents/inc-1">', "3 d 2 h ago", "raised the\nlimit", "mina, ", "called not useful"]
    order += ["/incidents/inc-13", f'href="/?rule={TOO_LARGE.rule}">1 more']
    places = [section.index(part) for part in order]
    assert places == sorted(places)
    past = client.get(f"{ADDRESS}.json").json()["past"]
    assert past["total"] == 5
    first = past["incidents"][0]
    assert (first["id"], first["near"], first["status"]) == ("inc-1", "entity", "resolved")
    assert [remark["kind"] for remark in first["remarks"]] == ["note", "not_useful"]


def test_the_page_has_what_else_was_considered_and_why_it_is_not_part_of_it(
    client: TestClient, store: Store, fill: Fill
) -> None:
    entity = TOO_LARGE.key[2]
    keys: list[AlertKey] = [("default", rule, entity) for rule in ("worker-slow", "source-lags")]
    severities = ("high", "info")
    alerts = [Alert(key, "firing", severity, AT, AT, AT, 1200, True) for key, severity in zip(keys, severities, strict=True)]
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_findings([Verdict(alert.key, (alert,)) for alert in alerts], (), (), ())
    slow = incident(id="inc-slow", key=keys[0], alerts=(keys[0],), rule="worker-slow", title=HOSTILE)
    fill(slow, TOO_LARGE)
    page = client.get(ADDRESS).text
    Tags(page)
    assert "<script>alert" not in page
    section = page[page.index('<h2 id="considered"') :]
    order = [
        '<a href="/incidents/inc-slow">&lt;script',
        "worker-slow",
        "connector=cdc-source task=0",
        "1,200",
        "an incident of its own",
    ]
    order += ["source-lags", "it only informs"]
    places = [section.index(part) for part in order]
    assert places == sorted(places)
    considered = client.get(f"{ADDRESS}.json").json()["considered"]
    assert [(each["rule"], each["reason"], each["incident"]) for each in considered] == [
        ("worker-slow", "apart", "inc-slow"),
        ("source-lags", "informs", None),
    ]
