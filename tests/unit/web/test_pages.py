"""What a browser is shown of the store, and what log text cannot do there."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from engine.cli.answer import document
from engine.cli.triage import Triage
from engine.errors import DataLoss
from engine.model.blast import BlastRadius, touched
from engine.model.incidents import (
    AlertCourse,
    Evidence,
    Incident,
    NotEvaluated,
    RenderedStep,
    Symptom,
)
from engine.model.links import Kibana, LinkTargets
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.store import Store
from engine.store.store import BatchId
from engine.web.app import application
from tests.unit.cli.incidents import AT, TOO_LARGE, incident
from tests.unit.cli.test_overview import STATS
from tests.unit.model.test_pictures import broker, fact, partition, topic
from tests.unit.web.conftest import HOST, NOW, Fill

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e\u200b{{ 7*7 }}"
ADDRESS = f"/incidents/{TOO_LARGE.id}"
COURSE = (
    AlertCourse(
        "root", TOO_LARGE.rule, TOO_LARGE.title, "critical", AT, AT, None, 1, {"connector": "cdc-source"}, ("c",), "e1"
    ),
)
DELIVERY = Delivery("kafka-ops", TOO_LARGE.id, 2, Reason.OPENED, AT, AT)


class Tags(HTMLParser):
    """Every start tag of a page with its attributes, and whether all were closed in order."""

    VOID = frozenset(("meta", "link", "input", "img", "br"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def told(store: Store, receiver: str) -> None:
    """Let the notifier have told `receiver` of the incident as it is."""
    known = NotificationLog(TOO_LARGE.rule, "open", "critical", revision=2, at=AT + timedelta(minutes=1))
    store.outbox().settle(
        [Settlement(replace(DELIVERY, receiver=receiver, state=DeliveryState.DELIVERED), known.at or AT, known)]
    )


def hostile() -> Incident:
    """Return an incident with hostile text in every field that holds text."""
    step = RenderedStep(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}, HOSTILE, True)
    texts = dict.fromkeys(("rule", "title", "component", "cause", "impact", "verify", "stage", "why"), HOSTILE)
    return incident(
        **texts,
        labels={HOSTILE: HOSTILE},
        fix=(step,),
        evidence=(Evidence("e1", HOSTILE, 1, AT, f"{HOSTILE}\n" * 20),),
        symptoms=(Symptom(HOSTILE, HOSTILE, 1, {HOSTILE: HOSTILE}),),
        captures={HOSTILE: HOSTILE},
        also_possible=(HOSTILE,),
        next_checks=(HOSTILE,),
        references=(HOSTILE, "javascript:alert(3)"),
        merged_into=HOSTILE,
        course=(AlertCourse("root", HOSTILE, HOSTILE, "high", AT, AT, None, 9, {"broker": HOSTILE}, (HOSTILE,), HOSTILE),),
    )


def test_the_page_of_an_incident(client: TestClient, store: Store, fill: Fill, golden: Callable[[str, str], None]) -> None:
    first = incident(revision=1, severity="high", symptoms=(), opened_at=AT)
    fill(first)
    told(store, "kafka-ops")
    fill(incident(opened_at=AT, count=3))
    page = client.get(ADDRESS)
    assert page.status_code == 200
    golden("incident_page.html", page.text)


def test_the_page_says_what_to_do_before_all_history(client: TestClient, fill: Fill) -> None:
    fill(replace(TOO_LARGE, course=COURSE))
    text = unescape(client.get(ADDRESS).text)
    order = ["<h1>", ">critical<", "open", "2023-02-03 02:05:02 UTC", "2 h 4 min ago", TOO_LARGE.cause, '<svg class="picture"']
    order += [
        TOO_LARGE.fix[1].run,
        TOO_LARGE.verify,
        TOO_LARGE.impact,
        "connect.log#kafka-connect-2:12",
        "History",
        "Nobody yet",
    ]
    text = text[text.index("<main") :].replace('<svg xmlns="http://www.w3.org/2000/svg"', "<svg")
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("address", ["/", ADDRESS])
def test_log_text_is_text_wherever_it_stands(client: TestClient, store: Store, fill: Fill, address: str) -> None:
    fill(hostile())
    store.outbox().put(replace(DELIVERY, receiver=HOSTILE, why=HOSTILE, state=DeliveryState.REJECTED))
    page = client.get(address).text
    tags = Tags(page).found
    scripts = [attributes for tag, attributes in tags if tag == "script"]
    assert scripts == [{"src": f"/static/{name}.js", "defer": None} for name in ("copy", "page")]
    assert not [tag for tag, attributes in tags if tag == "img" or any(name.startswith("on") for name in attributes)]
    assert not [attributes for _, attributes in tags if (attributes.get("href") or "").startswith("javascript")]
    assert all(c.isprintable() or c == "\n" for c in page)
    assert "\\x1b[31m\\u202e\\u200b" in page
    assert "{{ 7*7 }}" in page


def test_nothing_comes_from_elsewhere_and_nothing_is_inline(client: TestClient, fill: Fill) -> None:
    fill(TOO_LARGE)
    for tag, attributes in Tags(client.get(ADDRESS).text).found:
        assert "style" not in attributes
        if tag in ("script", "link", "img"):
            assert (attributes.get("src") or attributes.get("href") or "").startswith("/static/")
        assert tag != "style"


def test_the_json_is_that_of_a_scan_with_who_was_told(client: TestClient, store: Store, fill: Fill) -> None:
    fill(TOO_LARGE)
    told(store, "kafka-ops")
    (scanned,) = document(Triage((TOO_LARGE,), (), (), (), (), (), STATS))["incidents"]
    answer = client.get(f"{ADDRESS}.json")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert found | json.loads(json.dumps(scanned)) == found
    (delivery,) = found["deliveries"]
    assert (delivery["receiver"], delivery["state"], delivery["delivered"]) == ("kafka-ops", "delivered", 1)
    assert delivery["told"] == {"at": "2023-02-03T02:06:02.285Z", "status": "open", "severity": "critical", "revision": 2}
    assert [(line["by"], line["what"]) for line in found["timeline"]] == [
        ("logs", "opened with severity critical"),
        ("notifier", "kafka-ops was told: opened"),
    ]


def test_a_merged_incident_leads_to_the_one_it_is_part_of(client: TestClient, fill: Fill) -> None:
    fill(incident(status="merged", merged_into="inc-fedcba9876"))
    page = client.get(ADDRESS).text
    assert '<a href="/incidents/inc-fedcba9876">inc-fedcba9876</a>' in page


def test_the_page_leads_to_the_logs_in_kibana(store: Store, fill: Fill) -> None:
    fill(TOO_LARGE)
    links = LinkTargets("https://tocsin.example", Kibana("https://k", "v"))
    app = application(store, frozenset({HOST}), lambda: NOW, links)
    found = Tags(TestClient(app, base_url=f"http://{HOST}").get(ADDRESS).text).found
    assert links.of(TOO_LARGE)[1].url in [attributes.get("href") for _, attributes in found]


def test_a_line_leads_to_its_document_and_to_those_around_it_and_the_query_can_be_copied(store: Store, fill: Fill) -> None:
    line = replace(TOO_LARGE.evidence[0], origin="elasticsearch:logs-1/a%22b")
    told = incident(evidence=(line,))
    fill(told)
    links = LinkTargets("", Kibana("https://k", "v", fields={"topic": "kafka.topic.name"}))
    app = application(store, frozenset({HOST}), lambda: NOW, links)
    client = TestClient(app, base_url=f"http://{HOST}")
    page = client.get(ADDRESS).text
    hrefs = [attributes.get("href") for _, attributes in Tags(page).found]
    assert "https://k/app/discover#/doc/v/logs-1?id=a%22b" in hrefs
    assert any(href and href.startswith("https://k/app/discover#/context/v/a%22b?") for href in hrefs)
    assert "kafka.topic.name: &#34;A.B.C&#34;" in page and "_id: &#34;a\\&#34;b&#34;" in page
    value = client.get(f"{ADDRESS}.json").json()
    assert value["query"] == 'kafka.topic.name: "A.B.C"'
    assert value["evidence"][0]["origin"] == line.origin
    assert list(value["lines"][0]["links"]) == ["line", "around"]


def test_an_incident_without_times_says_so(client: TestClient, fill: Fill) -> None:
    fill(incident(first_seen=None, last_seen=None))
    assert "no time in its lines" in client.get("/").text
    page = client.get(ADDRESS).text
    assert "the lines bear no date" in page
    assert "picture" not in page.replace("picture.css", "")


def test_a_moment_has_no_duration(client: TestClient, fill: Fill) -> None:
    fill(incident(last_seen=AT + timedelta(milliseconds=2)))
    assert "lasted" not in client.get(ADDRESS).text


def test_a_long_trace_is_folded(client: TestClient, fill: Fill) -> None:
    trace = "java.lang.Error\n" + "\n".join(f"\tat x.Y.z{n}(Y.java)" for n in range(40))
    fill(incident(evidence=(Evidence("e1", "a.log", 3, AT, trace),)))
    page = client.get(ADDRESS).text
    assert "<summary>29 more lines</summary>" in page
    assert page.index("z10(") < page.index("<summary>") < page.index("z11(")


def test_who_was_told_what_and_what_is_on_its_way(client: TestClient, store: Store, fill: Fill) -> None:
    fill(TOO_LARGE)
    told(store, "kafka-ops")
    later = replace(DELIVERY, receiver="data", state=DeliveryState.RETRY_LATER, why="the channel is not there", attempts=3)
    store.outbox().put(later)
    page = client.get(ADDRESS).text
    rows = ["data", "retry later: the channel is not there (3 attempts), due ", "nothing"]
    rows += ["kafka-ops", ">delivered<", "open, critical (revision 2), "]
    places = [page.index(text, page.index("Who was told")) for text in rows]
    assert places == sorted(places)


def test_an_empty_store_has_a_page_too(client: TestClient) -> None:
    assert "No incidents." in client.get("/").text


def test_the_list_has_the_open_and_severe_ones_first(client: TestClient, fill: Fill) -> None:
    fill(
        incident(id="inc-1", title="over and critical", status="resolved"),
        incident(id="inc-2", title="open and low", severity="low"),
        incident(id="inc-3", title="open and critical"),
        incident(id="inc-4", title="not confirmed", pending=True),
        incident(id="inc-5", title="part of another", status="merged", merged_into="inc-3"),
    )
    page = client.get("/").text
    places = [page.index(title) for title in ("open and critical", "open and low", "over and critical")]
    assert places == sorted(places)
    assert "not confirmed" not in page
    assert "part of another" not in page
    assert "<b>2</b> open</a>" in page
    assert "<b>1</b> merged</a>" in page


def test_the_list_is_narrowed_by_its_address(client: TestClient, fill: Fill) -> None:
    fill(
        incident(id="inc-1", title="first", labels={"broker": "1"}),
        incident(id="inc-2", title="second", labels={"broker": "2"}, severity="low"),
        incident(id="inc-3", title="third", labels={"broker": "1"}, status="merged", merged_into="inc-1"),
    )
    seen = {
        "?status=open": {"first", "second"},
        "?status=merged": {"third"},
        "?severity=low": {"second"},
        "?label=broker=1": {"first"},
        "?label=broker%3D2&label=": {"second"},
        "?label=broker": {"first", "second"},
        "?label=broker=1&severity=low": set(),
    }
    for query, titles in seen.items():
        page = client.get(f"/{query}").text
        assert {title for title in ("first", "second", "third") if f">{title}</a>" in page} == titles, query
    assert "No incident fits." in client.get("/?label=broker=3").text


def test_the_list_is_searched_in_what_people_read(client: TestClient, store: Store, fill: Fill) -> None:
    fill(
        incident(
            id="inc-1", title="first", cause="The disk of Berlin is full.", key=("berlin", "disk-full", ()), rule="disk-full"
        ),
        incident(id="inc-2", title="second", evidence=(Evidence("e9", "a.log", 1, AT, "Connection to 100% lost_it"),)),
        incident(id="inc-3", title="third", labels={"topic": "Orders"}, component="broker"),
    )
    store.outbox().put(replace(DELIVERY, incident="inc-3", receiver="data-team"))
    seen = {
        "?q=berlin": {"first"},
        "?q=BERLIN+disk": {"first"},
        "?q=berlin+orders": set(),
        "?q=100%25": {"second"},
        "?q=lost_it": {"second"},
        "?q=lostXit": set(),
        "?q=orders": {"third"},
        "?q=cdc-source+tried": {"second", "third"},
        "?cluster=berlin": {"first"},
        "?rule=disk-full": {"first"},
        "?component=broker": {"third"},
        "?receiver=data-team": {"third"},
        "?receiver=nobody": set(),
    }
    for query, titles in seen.items():
        page = client.get(f"/{query}").text
        assert {title for title in ("first", "second", "third") if f">{title}</a>" in page} == titles, query
    page = client.get("/?cluster=berlin").text
    assert "<option selected>berlin</option>" in page
    assert "<option>data-team</option>" in page


def test_the_list_has_the_last_day_and_the_occurrences_of_each(client: TestClient, fill: Fill) -> None:
    fill(replace(TOO_LARGE, course=COURSE))
    page = client.get("/").text
    assert 'class="day"' in page and "02:00: 1 critical" in page
    assert 'class="spark critical"' in page


def test_the_names_of_captures_are_not_shown(client: TestClient, fill: Fill) -> None:
    fill(incident(captures={"lone_topic": "account_event"}))
    assert "lone_topic" not in client.get(ADDRESS).text


def test_a_preview_of_the_page_says_what_it_is(client: TestClient, fill: Fill) -> None:
    fill(TOO_LARGE)
    tags = Tags(client.get(ADDRESS).text).found
    meta = {attributes.get("property"): attributes.get("content") for tag, attributes in tags if tag == "meta"}
    assert meta["og:title"] == f"critical: {TOO_LARGE.title}"
    assert meta["og:description"] == TOO_LARGE.cause


def test_a_filter_that_does_not_exist_is_explained(client: TestClient) -> None:
    page = client.get("/?status=opn")
    assert page.status_code == 400
    assert "there is no status `opn`; known: open, acknowledged" in page.text


def test_a_long_list_has_pages(client: TestClient, fill: Fill) -> None:
    fill(*(incident(id=f"inc-{n}", title=f"number {n}.") for n in range(150)))
    assert "page 1 of 2" in client.get("/").text
    assert '<a rel="next" href="/?severity=critical&amp;page=2">' in client.get("/?severity=critical").text
    second = client.get("/?page=2").text
    assert second.count('<li class="row ') == 50
    assert '<a rel="prev" href="/">' in second
    assert "The list has 2 pages, not 9." in client.get("/?page=9").text


def test_what_tocsin_does_not_know_is_on_the_list(client: TestClient, store: Store) -> None:
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_findings((), (), (), [NotEvaluated("prod", "broker 3", "its silence is not judged")])
        ledger.put_losses([DataLoss("a.log", 4, 8, "the file is gone")])
    page = client.get("/").text
    assert "its silence is not judged" in page
    assert "offsets 4 to 8 are gone" in page


def test_every_change_has_its_line_in_the_timeline(client: TestClient, fill: Fill) -> None:
    later = AT + timedelta(hours=1)
    first = incident(revision=1, severity="high", symptoms=(), pending=True)
    steps = [
        {"pending": False},
        {"severity": "critical"},
        {"count": 2},
        {"count": 9, "last_seen": later},
        {"rule": "broker-silent", "title": "Broker 1 went silent"},
        {"symptoms": TOO_LARGE.symptoms},
        {"status": "resolved", "resolved_at": later, "why": "quiet"},
    ]
    now = first
    fill(now)
    for step in steps:
        now = replace(now, revision=now.revision + 1, **step)
        fill(now)
    page = unescape(client.get(ADDRESS).text)
    lines = [
        "seen with severity high, not yet confirmed",
        "confirmed and opened with severity high",
        "severity critical, high before",
        "the root cause is Broker 1 went silent [broker-silent], it was [connect-record-too-large-client]",
        "counted 9 times, 1 before",
        "explains A Connect task was killed [connect-task-killed]",
        "resolved (quiet)",
    ]
    places = [page.index(f"<td>{line}</td>") for line in lines]
    assert places == sorted(places)
    assert "counted 2 times" not in page


def test_what_the_rule_captured_is_marked_in_the_evidence(client: TestClient, fill: Fill) -> None:
    event = replace(TOO_LARGE.evidence[0], text="<1125872> and x1125872 of <b>\nsize 1125872")
    fill(incident(evidence=(event,), captures={"size": 1125872, "sign": "<b>", "short": "o"}))
    page = client.get(ADDRESS).text
    assert "&lt;<mark>1125872</mark>&gt; and x1125872 of <mark>&lt;b&gt;</mark>\nsize <mark>1125872</mark>" in page


def test_events_after_the_first_three_are_folded(client: TestClient, fill: Fill) -> None:
    fill(incident(evidence=tuple(replace(TOO_LARGE.evidence[0], text=f"event {n}") for n in range(5))))
    page = client.get(ADDRESS).text
    assert page.index("event 2") < page.index("<summary>2 more events</summary>") < page.index("event 3")
    Tags(page)


def test_the_list_says_how_logs_are_read_and_what_that_misses(client: TestClient, store: Store) -> None:
    assert "How logs are read" not in client.get("/").text
    store.put_input_notes(["old"])
    store.put_input_notes(["logs-*: read by @timestamp; LINES <b> WILL BE MISSED"])
    page = client.get("/").text
    assert "How logs are read (1)" in page
    assert "LINES &lt;b&gt; WILL BE MISSED" in page


def test_the_rules_have_a_page_of_what_came_of_them(client: TestClient, fill: Fill) -> None:
    assert "No incidents yet." in client.get("/rules").text
    fill(TOO_LARGE)
    page = client.get("/rules").text
    assert f'href="/?rule={TOO_LARGE.rule}"' in page
    assert 'data-name="incidents" class="number">1</td>' in page


def test_the_risks_of_clusters_that_are_asked_have_a_page(client: TestClient, store: Store) -> None:
    empty = client.get("/audit").text
    assert "No cluster is asked." in empty
    assert 'href="/audit"' in client.get("/").text
    asked_at = NOW - timedelta(minutes=1)
    facts = [broker(1), broker(2), topic(HOSTILE), partition(HOSTILE, 0), fact("cluster", "x", cluster_id="x")]
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_facts(replace(each, scope="<b>prod", at=asked_at) for each in facts)
    page = client.get("/audit").text
    Tags(page)
    text = unescape(page)
    order = ["<b>prod: 1 risk: 1 high", "2 brokers", "1 min ago", ">high<", "has one replica", "kafka-reassign-partitions.sh"]
    places = [text.index(part) for part in (*order, "topic-one-replica", "`tocsin audit` asks for them")]
    assert places == sorted(places)
    assert "Nobody has asked" not in page
    assert not {"script>alert", "<img", "<b>"} & {part for part in ("script>alert", "<img", "<b>") if part in page}
    later = TestClient(application(store, frozenset({HOST}), lambda: NOW + timedelta(hours=3)), base_url=f"http://{HOST}")
    assert "Nobody has asked this cluster for 3 h 1 min" in " ".join(later.get("/audit").text.split())


def test_the_risks_are_shown_to_who_has_signed_in(signed: Callable[[], TestClient]) -> None:
    answer = signed().get("/audit")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Faudit")


def test_what_an_incident_touches_is_listed_in_full_and_escaped(client: TestClient, fill: Fill) -> None:
    led = touched(f"orders-{number}" for number in range(1200))
    radius = BlastRadius("broker 1", AT, led=led, lone=touched(["account_event-0"]), groups=touched(["<b>shipping"]))
    shown = replace(incident(), blast=radius)
    fill(shown)
    page = client.get(f"/incidents/{shown.id}").text
    for part in (
        "What broker 1 touches",
        "Partitions it led: 1,200",
        "<code>orders-999</code>",
        "and 200 more",
        "<code>account_event-0</code>",
        "<code>&lt;b&gt;shipping</code>",
    ):
        assert part in page
    assert "orders-1000" not in page
    assert "Source connectors" not in page
