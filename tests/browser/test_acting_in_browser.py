"""A person without a mouse signs in, searches, acknowledges and resolves, with and without scripts; axe has nothing to say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.model.incidents import Incident
from tests.browser.conftest import PASSWORD, SCREENSHOTS, window
from tests.browser.test_pages_in_browser import path_of, violations

pytestmark = pytest.mark.server  # Chromium


@pytest.fixture(params=["with scripts", "without scripts"])
def reader(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=request.param == "with scripts")
    yield context.new_page()
    context.close()


def sign_in(page: Page, address: str, path: str = "/") -> None:
    """Sign in by keys alone: the field of the name has the focus."""
    page.goto(address + path)
    page.wait_for_url(re.compile("/login"))
    expect(page.locator("input[name=name]")).to_be_focused()  # the browser gives the focus after the load
    page.keyboard.type("mina")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(address + path)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the button `name` has the focus."""
    button = page.get_by_role("button", name=name, exact=True)
    for _ in range(40):
        page.keyboard.press("Tab")
        if button.count() and button.evaluate("each => each === document.activeElement"):
            return
    pytest.fail(f"{name} cannot be reached by Tab")


def test_a_person_acts_by_keys_alone(reader: Page, acting_address: str, incidents: list[Incident]) -> None:
    path = path_of("broker-silent", incidents)
    sign_in(reader, acting_address, path)
    for button, state in (("Acknowledge", "acknowledged"), ("Resolve", "resolved"), ("Reopen", "open")):
        tab_to(reader, button)
        reader.keyboard.press("Enter")
        expect(reader.locator(".head .status")).to_have_text(state)
    assert "mina (page)" in re.sub(r"\s+", " ", reader.locator("section:has(#timeline)").inner_text())


@pytest.mark.parametrize(("width", "mode"), [(390, "light"), (1280, "dark")])
def test_pages_to_act_on_fit_and_axe_has_nothing_to_say(
    browser: Browser, acting_address: str, incidents: list[Incident], width: int, mode: str
) -> None:
    page, problems = window(browser, width, mode)

    def look(name: str) -> None:
        page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{mode}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off on the right"
        assert violations(page) == []

    SCREENSHOTS.mkdir(exist_ok=True)
    path = path_of("consumer-commit-failed", incidents)
    page.goto(acting_address + path)
    look("login")
    sign_in(page, acting_address, path)
    if page.get_by_role("button", name="Acknowledge", exact=True).count():
        page.get_by_role("button", name="Acknowledge", exact=True).click()
    page.locator(".acts summary").click()
    look("acts")
    page.goto(acting_address)
    look("list-signed-in")
    page.goto(f"{acting_address}/rules")
    look("rules")
    page.goto(acting_address)
    assert page.locator(".row .owner").first.is_visible()
    assert problems == []
    page.context.close()


def test_what_another_person_did_first_is_said(browser: Browser, acting_address: str, incidents: list[Incident]) -> None:
    path = path_of("inc-restarted", incidents)
    first, second = (browser.new_context().new_page() for _ in range(2))
    for page in (first, second):
        sign_in(page, acting_address, path)
    buttons = [page.get_by_role("button", name="Reopen", exact=True) for page in (first, second)]
    for button in buttons:
        button.click()
    assert second.get_by_role("alert").inner_text() == "Nothing changed: it is open already."
    for page in (first, second):
        page.context.close()


def test_a_list_whose_session_has_ended_says_so_and_leads_back(browser: Browser, acting_address: str) -> None:
    page, _ = window(browser, 390, "light")
    sign_in(page, acting_address, "/?severity=critical")
    page.evaluate("refresh()")
    assert not page.get_by_text("Your sign-in has ended").is_visible()
    page.context.clear_cookies()
    page.evaluate("refresh()")
    assert page.get_by_text("Your sign-in has ended").is_visible()
    assert "stale" in (page.locator("#list").get_attribute("class") or "")
    assert violations(page) == []
    page.screenshot(path=SCREENSHOTS / "list-session-ended-390-light.png")
    page.get_by_role("link", name="Sign in again").click()
    page.wait_for_url(re.compile(r"/login\?next=%2F%3Fseverity%3Dcritical"))
    page.context.close()


def test_a_list_whose_server_is_away_says_so_until_it_is_back(page: Page, acting_address: str) -> None:
    sign_in(page, acting_address)
    page.route("**/*", lambda route: route.abort())
    page.evaluate("refresh()")
    assert page.get_by_text("The server does not answer").is_visible()
    page.unroute("**/*")
    page.evaluate("refresh()")
    assert not page.get_by_text("The server does not answer").is_visible()
    assert "stale" not in (page.locator("#list").get_attribute("class") or "")
