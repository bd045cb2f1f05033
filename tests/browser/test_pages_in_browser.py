"""The pages in a real browser: looks (screenshots are left in .screenshots), keys, refreshing, and no violation of axe."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from engine.model.incidents import Incident
from tests.browser.conftest import SCREENSHOTS, WIDTHS, window

pytestmark = pytest.mark.server  # Chromium
PAGES = ("list", "audit", "broker-silent", "inc-restarted", "consumer-commit-failed")

ADDRESSES = {"list": "/", "audit": "/audit"}


def path_of(name: str, incidents: list[Incident]) -> str:
    if name in ADDRESSES:
        return ADDRESSES[name]
    (incident, *_) = [each for each in incidents if name in (each.rule, each.id)]
    return f"/incidents/{incident.id}"


def violations(page: Page) -> list[str]:
    answer = Axe().run(page).response["violations"]
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in answer]


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window_and_axe_has_nothing_to_say(
    browser: Browser, address: str, incidents: list[Incident], name: str, width: int, mode: str
) -> None:
    page, problems = window(browser, width, mode)
    page.goto(address + path_of(name, incidents))
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{mode}.png")
    page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{mode}-whole.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off on the right"
    assert violations(page) == []
    assert problems == [], "such as a style that the policy of the pages refuses"
    page.context.close()


@pytest.mark.parametrize(("width", "mode"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", ["list", "broker-silent", "consumer-commit-failed"])
def test_a_korean_reader_has_pages_in_korean_that_fit(
    browser: Browser, address: str, incidents: list[Incident], name: str, width: int, mode: str
) -> None:
    page, problems = window(browser, width, mode, "ko-KR")
    page.goto(address + path_of(name, incidents))
    page.screenshot(path=SCREENSHOTS / f"{name}-ko-{width}-{mode}.png")
    page.screenshot(path=SCREENSHOTS / f"{name}-ko-{width}-{mode}-whole.png", full_page=True)
    assert page.locator("html").get_attribute("lang") == "ko"
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off on the right"
    assert violations(page) == []
    assert problems == []
    page.context.close()


@pytest.mark.parametrize(("width", "mode"), [(390, "dark"), (1280, "light")])
def test_the_lines_around_a_line_fit_their_window(
    browser: Browser, address: str, incidents: list[Incident], width: int, mode: str
) -> None:
    page, problems = window(browser, width, mode)
    page.goto(address + path_of("broker-silent", incidents))
    page.get_by_role("link", name="Lines around it").first.click()
    page.wait_for_url(re.compile(r"/lines/1$"))
    page.screenshot(path=SCREENSHOTS / f"around-{width}-{mode}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off on the right"
    assert violations(page) == []
    assert problems == []
    page.context.close()


def test_five_incidents_are_on_the_first_screen_of_a_telephone(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    rows = page.locator("#list .row").all()
    whole = [row for row in rows if (box := row.bounding_box()) and box["y"] + box["height"] <= 844]
    assert len(whole) >= 5


@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (1280, "wide")])
def test_one_of_the_two_pictures_is_shown_with_legible_text(
    page: Page, address: str, incidents: list[Incident], width: int, shown: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address + path_of("broker-silent", incidents))
    visible = [each for each in page.locator("svg.picture").all() if each.is_visible()]
    assert len(visible) == 1
    assert page.locator(f".{shown} svg.picture").is_visible()
    for text in page.locator(f".{shown} svg.picture text").all():
        box = text.bounding_box()
        assert box is not None and box["height"] >= 9


def test_a_mark_leads_to_its_line_and_can_be_reached_by_tab(page: Page, address: str, incidents: list[Incident]) -> None:
    page.goto(address + path_of("broker-silent", incidents))
    mark = page.locator(".wide a.silence")
    mark.focus()
    assert "last sign of life" in (mark.get_attribute("aria-label") or "")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"#line-1$"))
    assert page.locator("#line-1").is_visible()


def test_keys_search_and_move_and_open(page: Page, address: str) -> None:
    page.goto(address)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    titles = page.locator("#list a.title")
    assert titles.first.evaluate("each => each === document.activeElement")
    page.keyboard.press("/")
    page.keyboard.type("leaderId=1")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"q=leaderId"))
    assert {title.inner_text() for title in page.locator("#list a.title").all()} == {"Broker 1 went silent"}
    page.keyboard.press("?")
    assert page.locator("dialog#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/incidents/"))


def test_the_list_refreshes_and_keeps_the_place(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 400})
    page.goto(address)
    for _ in range(4):
        page.keyboard.press("j")
    before = page.evaluate("[document.activeElement.href, window.scrollY]")
    page.evaluate("document.querySelector('#list .row').classList.add('old')")
    with page.expect_response(address + "/"):
        page.evaluate("refresh()")
    page.wait_for_function("document.querySelector('#list .row.old') === null")
    assert page.evaluate("[document.activeElement.href, window.scrollY]") == before


def test_times_are_those_of_the_reader(page: Page, address: str) -> None:
    page.goto(address)
    title = page.locator("#list .since time").first.get_attribute("title") or ""
    assert "GMT+9" in title and "UTC" in title
