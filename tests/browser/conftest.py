"""A real Chromium before the real server, over a store with the incidents of the stories as if they had just happened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace
from playwright.sync_api import Browser, Page, sync_playwright

from engine.model.acts import Act, ActKind
from engine.model.incidents import Alert, Evidence, Incident, Verdict
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason, Settlement
from engine.model.proof import Neighbours
from engine.store import Store
from engine.store.store import BatchId
from engine.web.access import SignedIn
from engine.web.app import PageInputs, application
from engine.web.languages import Languages
from engine.web.passwords import Users, put_user
from engine.web.server import listen_on, origins, serving
from engine.web.sessions import Sessions
from tests.rulepack.playing import STORIES, plan, play, story
from tests.unit.model.test_pictures import broker, fact, partition, topic
from tests.unit.picture.stories import restarted

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
PASSWORD = "correct horse battery"
SCREENSHOTS = Path(__file__).parents[2] / ".screenshots"
WIDTHS = {390: 844, 1280: 900}  # width: height
NOW = datetime(2026, 11, 26, 3, 12, tzinfo=UTC)


def moved(value: Any, by: timedelta) -> Any:
    """Return a value of the model with every time moved by `by`."""
    if isinstance(value, datetime):
        return value + by
    if isinstance(value, tuple):
        return tuple(moved(item, by) for item in value)
    if isinstance(value, Struct):
        return type(value)(**{name: moved(item, by) for name, item in asdict(value).items()})
    return value


def recent() -> list[Incident]:
    """Return the incidents of the stories, each moved so that it was last seen between a few minutes and some hours ago."""
    korean = replace(plan(), languages=("ko",))
    incidents = [incident for folder in STORIES for incident in play(story(folder), of=korean)]
    ages = (timedelta(minutes=12 + 47 * n) for n in range(len(incidents) + 1))
    ended = [replace(restarted(), id="inc-restarted", title="Broker 1 went silent")]
    return [
        moved(each, NOW - age - each.last_seen) if each.last_seen else each
        for each, age in zip([*incidents, *ended], ages, strict=False)
    ]


class Shelf:
    """Has the same long lines around every line of evidence."""

    def may_read(self, evidence: Evidence) -> bool:
        return True

    def neighbours(self, evidence: Evidence) -> Neighbours:
        line = f"[2022-10-05 17:05:01,000] INFO {'[Log partition=orders-0, dir=/var/lib/kafka] ' * 4}(kafka.log.Log)"
        return Neighbours((line,) * 5, (f"{line}\n\tat x.Y.z(Y.java)\n... 4 more lines",) * 5)


@pytest.fixture(scope="session")
def incidents() -> list[Incident]:
    return recent()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, incidents: list[Incident]) -> Iterator[str]:
    """Return the address of a server over these incidents, of which `kafka-ops` was told; a silence has a past."""
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('store')}/tocsin.db")
    (silent,) = [each for each in incidents if each.rule == "broker-silent" and each.status == "open"]
    past = [
        moved(replace(silent, id=f"inc-past-{n}", status="open" if n == 3 else "resolved"), -timedelta(days=n))
        for n in range(1, 6)
    ]
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([*past, *incidents])
        begin, key = silent.first_seen or NOW, (silent.key[0], "broker-slow-disk", silent.key[2])
        slow = Alert(key, "firing", "info", begin, begin, None, 1200, True, dict(silent.labels))
        ledger.put_findings([Verdict(key, (slow,))], (), (), ())
        asked = [*(broker(id_) for id_ in (1, 2, 3)), fact("cluster", "x", cluster_id="dG9jc2luLXRlc3RzLTAwMQ")]
        asked += [part for name in ("account_event", "orders") for part in (topic(name), partition(name, 0))]
        ledger.put_facts(replace(each, at=NOW - timedelta(minutes=1)) for each in asked)
    for n, kind, text in (
        (3, ActKind.NOTE, "Power supply of rack 7. The broker was up again after\nthe fuse was replaced."),
        (3, ActKind.RESOLVE, "replaced the fuse"),
        (1, ActKind.NOT_USEFUL, "planned work on the rack"),
    ):
        at = NOW - timedelta(days=n)
        store.acts().record(Act(f"{n} {kind}", f"inc-past-{n}", kind, "mina", "page", at, text))
    for incident in incidents:
        at = (incident.first_seen or NOW) + timedelta(minutes=2)
        known = NotificationLog(incident.rule, incident.status, incident.severity, at, revision=incident.revision)
        entry = Delivery("kafka-ops", incident.id, incident.revision, Reason.OPENED, at, at, DeliveryState.DELIVERED)
        store.outbox().settle([Settlement(entry, at, known)])
    listener = listen_on("127.0.0.1", 0)
    inputs = PageInputs(Shelf(), languages=Languages(offered=("ko",)))
    with serving(application(store, listener.names(), lambda: NOW, inputs=inputs), listener, "pages"):
        yield listener.address.rstrip("/")
    store.close()


@pytest.fixture(scope="module")
def acting_address(tmp_path_factory: pytest.TempPathFactory, incidents: list[Incident]) -> Iterator[str]:
    """Return the address of a server with the same incidents, on which mina signs in with PASSWORD."""
    folder = tmp_path_factory.mktemp("acting")
    store = Store.open(f"sqlite:///{folder}/tocsin.db")
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents(incidents)
    put_user(folder / "users", "mina", PASSWORD)
    users = Users(folder / "users")
    access = SignedIn(users, Sessions("a secret of the tests", 3600, users.fingerprint), is_encrypted=False)
    listener = listen_on("127.0.0.1", 0)
    app = application(store, listener.names(), lambda: NOW, access=access, origins=origins(listener))
    with serving(app, listener, "pages"):
        yield listener.address.rstrip("/")
    store.close()


@pytest.fixture(scope="module")  # while it runs, no other event loop can run in this thread
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            pytest.fail("Chromium is missing: apt-get install chromium")
        pytest.skip("Chromium is missing")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def window(browser: Browser, width: int, mode: str, locale: str = "en-GB") -> tuple[Page, list[str]]:
    """Return a page in a window of this width, mode and locale, and the list of the errors and warnings of its console."""
    size = {"width": width, "height": WIDTHS[width]}
    context = browser.new_context(viewport=size, color_scheme=mode, locale=locale, timezone_id="Asia/Seoul")
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    return page, problems


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB", timezone_id="Asia/Seoul")
    yield context.new_page()
    context.close()
