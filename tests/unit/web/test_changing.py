"""What people change on the pages, and how somebody else might: forged forms, fixed sessions, guessed passwords."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from engine.model.acts import ActKind
from engine.model.links import NO_LINKS
from engine.store import Store
from engine.web.access import BehindProxy
from engine.web.app import application
from engine.web.attempts import OF_BROWSER, OF_NAME, OF_NAME_AND_ADDRESS
from engine.web.passwords import put_user
from engine.web.sessions import Sessions
from tests.unit.cli.incidents import TOO_LARGE, incident
from tests.unit.web.conftest import HOST, NOW, ORIGIN, PASSWORD, Fill

PAGE = f"/incidents/{TOO_LARGE.id}"
ACTS = f"{PAGE}/acts"
FROM_HERE = {"Origin": ORIGIN}
Open = Callable[[], TestClient]


@pytest.fixture
def browser(signed: Open, fill: Fill) -> TestClient:
    """Return the browser of mina, who is signed in."""
    fill(TOO_LARGE)
    opened = signed()
    sign_in(opened)
    return opened


def sign_in(browser: TestClient, name: str = "mina", password: str = PASSWORD, **fields: str) -> int:
    form = {"name": name, "password": password, **fields}
    return browser.post("/login", data=form, headers=FROM_HERE).status_code


def hidden(browser: TestClient, page: str = PAGE) -> dict[str, str]:
    """Return the hidden fields of the first form that acts on a page."""
    text = browser.get(page).text
    form = text[text.index("/acts") :]
    return {name: unescape(re.search(rf'name="{name}" value="([^"]+)"', form)[1]) for name in ("token", "key")}  # type: ignore[index]


def act(browser: TestClient, kind: str, **fields: str) -> int:
    return browser.post(ACTS, data={**hidden(browser), "kind": kind, **fields}, headers=FROM_HERE).status_code


def test_a_person_acknowledges_notes_and_resolves(browser: TestClient, store: Store, audit: list[dict[str, str]]) -> None:
    assert "Acknowledge</button>" in browser.get(PAGE).text
    assert act(browser, "acknowledge", text="on it") == 303
    page = browser.get(PAGE).text
    assert "mina has it" in page and "acknowledged: on it" in page and "Unacknowledge</button>" in page
    assert act(browser, "note", text="<b>the disk</b>\r\nis full") == 303
    assert "note: &lt;b&gt;the disk&lt;/b&gt;\nis full" in browser.get(PAGE).text
    assert act(browser, "silence", **{"of": "rule", "for": "4 h"}) == 303
    assert act(browser, "assign", assignee="jun") == 303
    assert '<span class="sr">Has it:</span> jun' in browser.get("/").text
    assert act(browser, "resolve") == 303
    assert act(browser, "not_useful", text="the same every night") == 303
    assert [(each.kind, each.by, each.via) for each in store.acts().of(TOO_LARGE.id)] == [
        (kind, "mina", "page")
        for kind in (
            ActKind.ACKNOWLEDGE,
            ActKind.NOTE,
            ActKind.SILENCE,
            ActKind.ASSIGN,
            ActKind.RESOLVE,
            ActKind.NOT_USEFUL,
        )
    ]
    (silence,) = store.outbox().silences(NOW)
    assert (silence.ends_at - NOW).total_seconds() == 4 * 3600
    page = browser.get(PAGE).text
    assert "Silenced until" in page and f"<code>rule=&#34;{TOO_LARGE.rule}&#34; cluster=&#34;default&#34;</code>" in page
    assert [each["event"] for each in audit] == ["signed in", *["act"] * 6]
    assert audit[1] == {
        "event": "act",
        "user": "mina",
        "address": "testclient",
        "kind": "acknowledge",
        "incident": TOO_LARGE.id,
        "outcome": "done",
    }


def test_a_form_that_is_sent_twice_is_one_act_and_one_filled_in_anew_is_another(browser: TestClient, store: Store) -> None:
    fields = {**hidden(browser), "kind": "note"}
    for text in ("one", "one", "two"):
        assert browser.post(ACTS, data={**fields, "text": text}, headers=FROM_HERE).status_code == 303
    assert [each.text for each in store.acts().of(TOO_LARGE.id)] == ["one", "two"]


def test_what_has_no_effect_says_why_on_the_page(browser: TestClient, signed: Open, store: Store) -> None:
    act(browser, "resolve")
    other = signed()
    sign_in(other, "jun")
    answer = other.post(ACTS, data={**hidden(other), "kind": "resolve"}, headers=FROM_HERE)
    assert (answer.status_code, "Nothing changed: it is resolved already (by mina)." in answer.text) == (200, True)
    refused = other.post(ACTS, data={**hidden(other), "kind": "acknowledge"}, headers=FROM_HERE)
    assert (refused.status_code, "Not done: it is resolved (by mina); reopen it first." in refused.text) == (409, True)
    assert len(store.acts().of(TOO_LARGE.id)) == 1


def test_a_silence_can_be_ended_once(browser: TestClient, store: Store) -> None:
    act(browser, "silence")
    (silence,) = store.outbox().silences(NOW)
    assert act(browser, "unsilence", silence=silence.id) == 303
    assert store.outbox().silences(NOW) == []
    page = browser.get(PAGE).text
    assert f"ended the silence {silence.id}" in page and "Silenced until" not in page
    fields = {**hidden(browser), "kind": "unsilence", "silence": silence.id}
    again = browser.post(ACTS, data=fields, headers=FROM_HERE)
    assert f"Nothing changed: there is no silence `{silence.id}` of this incident that has not ended." in unescape(again.text)


def test_two_silences_of_a_page_are_ended_one_by_one_and_those_of_other_incidents_not(
    browser: TestClient, store: Store, fill: Fill
) -> None:
    act(browser, "silence")
    act(browser, "silence", of="rule")
    fields = {**hidden(browser), "kind": "unsilence"}
    first, second = store.outbox().silences(NOW)
    fill(TOO_LARGE, incident(id="inc-0", key=("default", "other", ())))
    elsewhere = browser.post("/incidents/inc-0/acts", data={**fields, "silence": first.id}, headers=FROM_HERE)
    assert "Nothing changed" in elsewhere.text
    for silence in (first, second):
        assert browser.post(ACTS, data={**fields, "silence": silence.id}, headers=FROM_HERE).status_code == 303
    assert store.outbox().silences(NOW) == []


def test_an_act_on_a_merged_incident_leads_to_the_one_that_it_is_part_of(browser: TestClient, fill: Fill) -> None:
    fill(incident(id="inc-0"), incident(revision=3, status="merged", merged_into="inc-0"))
    answer = browser.post(ACTS, data={**hidden(browser), "kind": "note", "text": "x"}, headers=FROM_HERE)
    assert answer.headers["location"] == "/incidents/inc-0"


def test_without_signing_in_nothing_is_seen_and_nothing_changed(signed: Open, fill: Fill, store: Store) -> None:
    fill(TOO_LARGE)
    browser = signed()
    for address in ("/", "/?q=secret", PAGE):
        answer = browser.get(address)
        assert (answer.status_code, answer.text) == (303, "")
        assert answer.headers["location"].startswith("/login?next=%2F")
    assert browser.get(f"{PAGE}.json").status_code == 401
    assert browser.get("/healthz").status_code == 200
    assert browser.post(ACTS, data={"kind": "resolve"}, headers=FROM_HERE).headers["location"].startswith("/login")
    assert store.acts().of(TOO_LARGE.id) == []


def test_without_users_there_is_nothing_to_press_and_no_way_to_change(client: TestClient, fill: Fill, store: Store) -> None:
    fill(TOO_LARGE)
    assert "<button" not in client.get(PAGE).text
    assert client.post(ACTS, data={"kind": "resolve", "key": "x"}, headers=FROM_HERE).status_code == 404
    assert store.acts().of(TOO_LARGE.id) == []


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:8321", f"{ORIGIN}.evil.example"])
def test_a_form_from_another_origin_is_refused(
    browser: TestClient, store: Store, audit: list[dict[str, str]], origin: str | None
) -> None:
    headers = {} if origin is None else {"Origin": origin}
    for address, fields in ((ACTS, {**hidden(browser), "kind": "resolve"}), ("/login", {"name": "mina", "password": PASSWORD})):
        assert browser.post(address, data=fields, headers=headers).status_code == 403
    assert browser.post("/logout", data=hidden(browser), headers=headers).status_code == 403
    assert store.acts().of(TOO_LARGE.id) == []
    assert audit[-1]["event"] == "refused" and audit[-1]["origin"] == (origin or "none")


def test_a_form_without_a_token_of_this_session_is_refused(browser: TestClient, signed: Open, store: Store) -> None:
    other = signed()
    sign_in(other, "jun")
    for token in ("", "x", hidden(other)["token"], hidden(browser)["token"][:-1]):
        fields = {**hidden(browser), "token": token, "kind": "resolve"}
        answer = browser.post(ACTS, data=fields, headers=FROM_HERE)
        assert (answer.status_code, "too old, or came from elsewhere" in answer.text) == (403, True)
    assert store.acts().of(TOO_LARGE.id) == []


def test_signing_in_makes_a_new_session_whatever_the_browser_brings(signed: Open, fill: Fill) -> None:
    fill(TOO_LARGE)
    attacker, victim = signed(), signed()
    sign_in(attacker, "jun")
    planted = attacker.cookies["tocsin"]
    victim.cookies.set("tocsin", planted, domain="127.0.0.1", path="/")
    sign_in(victim, "mina")
    cookies = [each.value for each in victim.cookies.jar if each.name == "tocsin"]
    assert cookies[-1] != planted
    assert "jun" in attacker.get("/").text, "what the attacker holds is still only the attacker's own"
    again = signed()
    sign_in(again, "mina")
    assert again.cookies["tocsin"] != cookies[-1]


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(signed: Open) -> None:
    answer = signed().post("/login", data={"name": "mina", "password": PASSWORD}, headers=FROM_HERE)
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", "max-age=3600"} <= attributes
    assert not any(part.startswith("domain") for part in attributes)


def test_a_session_ends_when_its_user_signs_out_and_a_copied_cookie_with_it(browser: TestClient, signed: Open) -> None:
    copied = browser.cookies["tocsin"]
    thief = signed()
    thief.cookies.set("tocsin", copied)
    assert thief.get("/").status_code == 200
    assert browser.post("/logout", data=hidden(browser), headers=FROM_HERE).status_code == 303
    assert browser.get("/").status_code == 303
    assert thief.get("/").status_code == 303


def test_a_session_ends_with_the_password_and_with_the_user(browser: TestClient, users: Path) -> None:
    put_user(users, "mina", "another long password")
    assert browser.get("/").status_code == 303


def test_a_cookie_cannot_be_made_up(signed: Open, users: Path) -> None:
    forged = Sessions("another secret, as long", 3600, lambda _: "0123456789abcdef").begin("mina")
    for cookie in (forged, "mina", "", forged.replace(".", ".x")):
        browser = signed()
        browser.cookies.set("tocsin", cookie)
        assert browser.get("/").status_code == 303


def test_passwords_cannot_be_guessed(signed: Open, audit: list[dict[str, str]]) -> None:
    browser = signed()
    answers = [sign_in(browser, password=f"guess number {n}") for n in range(OF_NAME_AND_ADDRESS + 1)]
    assert answers == [*[403] * OF_NAME_AND_ADDRESS, 429]
    assert sign_in(browser) == 429, "not even the right one is tried now"
    refused = browser.post("/login", data={"name": "mina", "password": PASSWORD}, headers=FROM_HERE)
    assert 0 < int(refused.headers["retry-after"]) <= 300
    assert "Try again in" in refused.text
    assert sign_in(browser, "jun") == 303, "others sign in as ever"
    assert [each["event"] for each in audit][:6] == [*["sign-in failed"] * 5, "sign-in refused"]
    assert not any(PASSWORD in str(each) or "guess" in str(each) for each in audit)


def test_nobody_is_kept_out_of_a_browser_in_which_they_have_signed_in(signed: Open) -> None:
    known, other = signed(), signed()
    assert sign_in(known) == 303
    guesses = [sign_in(other, password=f"guess number {n}") for n in range(OF_NAME_AND_ADDRESS + 1)]
    assert guesses[-1] == 429
    assert sign_in(known) == 303
    assert [sign_in(known, "jun", f"guess number {n}") for n in range(OF_NAME_AND_ADDRESS + 1)][-1] == 429, (
        "it is mina's browser"
    )
    assert [sign_in(known, password=f"guess number {n}") for n in range(OF_BROWSER + 1)] == [*[403] * OF_BROWSER, 429]


def test_passwords_cannot_be_guessed_by_many_requests_at_once(signed: Open) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: sign_in(signed(), password=f"guess number {n}"), range(40)))
    assert answers.count(403) <= OF_NAME_AND_ADDRESS + 1
    assert answers.count(403) + answers.count(429) == 40
    assert OF_NAME > OF_NAME_AND_ADDRESS


def test_a_name_that_is_no_user_is_answered_like_a_wrong_password(signed: Open) -> None:
    wrong, unknown = (
        signed().post("/login", data={"name": name, "password": "not the password"}, headers=FROM_HERE)
        for name in ("jun", "nobody")
    )
    assert (wrong.status_code, wrong.text.replace("jun", "nobody")) == (unknown.status_code, unknown.text)


@pytest.mark.parametrize(
    "onward", ["//evil.example", "https://evil.example", "/\\evil.example", "\n//evil", "javascript:alert(1)"]
)
def test_signing_in_leads_to_no_other_site(signed: Open, onward: str) -> None:
    answer = signed().post("/login", data={"name": "mina", "password": PASSWORD, "next": onward}, headers=FROM_HERE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_signing_in_leads_to_what_was_asked_for(signed: Open) -> None:
    browser = signed()
    there = browser.get("/?q=a%26b&page=2").headers["location"]
    assert 'name="next" value="/?q=a%26b&amp;page=2"' in browser.get(there).text
    sign_in(browser)
    assert browser.get(there).headers["location"] == "/?q=a%26b&page=2"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        (b"a=1&" * 30, "application/x-www-form-urlencoded", 400),
        (b"\xff=\xff", "application/x-www-form-urlencoded", 400),
        (b"{}", "application/json", 415),
        (b"", "", 415),
    ],
)
def test_a_body_that_is_no_form_of_ours_is_refused(browser: TestClient, body: bytes, kind: str, status: int) -> None:
    headers = {**FROM_HERE, "Content-Type": kind}
    assert browser.post(ACTS, content=body, headers=headers).status_code == status
    assert browser.post("/login", content=body, headers=headers).status_code == status


@pytest.mark.parametrize(
    "fields", [{"kind": "destroy"}, {"kind": "silence", "for": "9 y"}, {"kind": "silence", "of": "all"}, {}]
)
def test_a_form_that_names_no_act_is_refused(browser: TestClient, store: Store, fields: dict[str, str]) -> None:
    assert browser.post(ACTS, data={**hidden(browser), **fields}, headers=FROM_HERE).status_code == 400
    assert store.acts().of(TOO_LARGE.id) == []


def test_an_unknown_incident_cannot_be_acted_on(browser: TestClient) -> None:
    fields = {**hidden(browser), "kind": "resolve"}
    assert browser.post("/incidents/inc-nothing/acts", data=fields, headers=FROM_HERE).status_code == 404


@pytest.fixture
def proxied(store: Store, fill: Fill) -> Callable[[str], TestClient]:
    """Return what opens a browser whose requests come from an address, to pages behind a proxy at 10.0.0.0/24."""
    fill(TOO_LARGE)
    access = BehindProxy("X-Forwarded-User", [ip_network("10.0.0.0/24")], Sessions("a secret of tests", 3600, lambda _: ""))
    app = application(store, frozenset({HOST}), lambda: NOW, NO_LINKS, access, origins=frozenset({ORIGIN}))
    return lambda address: TestClient(app, base_url=ORIGIN, client=(address, 5000), follow_redirects=False)


@pytest.mark.parametrize("address", ["10.0.0.7", "::ffff:10.0.0.7"])
def test_a_proxy_names_the_user(proxied: Callable[[str], TestClient], store: Store, address: str) -> None:
    browser = proxied(address)
    browser.headers["X-Forwarded-User"] = "mina@example.org"
    assert "Sign out" not in browser.get(PAGE).text
    assert act(browser, "acknowledge") == 303
    assert store.acts().of(TOO_LARGE.id)[0].by == "mina@example.org"
    fields = {**hidden(browser), "kind": "resolve"}
    browser.headers["X-Forwarded-User"] = "jun"
    assert browser.post(ACTS, data=fields, headers=FROM_HERE).status_code == 403, "the form was another user's"


@pytest.mark.parametrize("address", ["10.0.1.7", "127.0.0.1", "::1", "testclient"])
def test_a_header_from_elsewhere_is_forged(proxied: Callable[[str], TestClient], store: Store, address: str) -> None:
    browser = proxied(address)
    headers = {"X-Forwarded-User": "mina", "X-Forwarded-For": "10.0.0.7", "Forwarded": "for=10.0.0.7"}
    for page in ("/", PAGE, f"{PAGE}.json"):
        answer = browser.get(page, headers=headers)
        assert (answer.status_code, TOO_LARGE.title in answer.text) == (403, False)
    assert browser.post(ACTS, data={"kind": "resolve", "key": "x"}, headers={**headers, **FROM_HERE}).status_code == 403
    assert browser.get("/healthz").status_code == 200
    assert store.acts().of(TOO_LARGE.id) == []


@pytest.mark.parametrize("names", [[], [""], ["  "], ["mina", "root"], ["root, mina"], ["mi\u202ena"], ["x" * 201]])
def test_a_proxy_that_names_nobody_lets_nobody_in(proxied: Callable[[str], TestClient], names: list[str]) -> None:
    headers = [(b"x-forwarded-user", name.encode()) for name in names]
    assert proxied("10.0.0.7").get("/", headers=headers).status_code == 403
