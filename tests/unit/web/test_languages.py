"""Pages in Korean: whose, and that nothing of tocsin's own is left in English on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from engine.language import words_of
from engine.model.acts import Act, ActKind
from engine.model.incidents import Incident
from engine.model.links import NO_LINKS
from engine.model.notifications import Attempt, DeliveryState, Reason
from engine.store import Store
from engine.web.app import PageInputs, application
from engine.web.export import write_pages
from engine.web.history import History, in_language
from engine.web.languages import Languages
from engine.web.timeline import timeline
from tests.rulepack.playing import STORIES, plan, play, story
from tests.unit.cli.incidents import AT, TOO_LARGE
from tests.unit.web.conftest import HOST, NOW, Fill

KO = words_of("ko")
ENGLISH_TEXT = re.compile(r"[a-z]{3,} [a-z]{2,}")
NOT_OURS = re.compile(r"<(pre|code|script|style|blockquote)\b.*?</\1>|<[^>]*>", re.DOTALL)
ATTRIBUTES = re.compile(r'(?:aria-label|placeholder|data-name|title|data-copy)="([^"]*)"')


def korean_client(store: Store, languages: Languages) -> TestClient:
    app = application(store, frozenset({HOST}), lambda: NOW, inputs=PageInputs(languages=languages))
    return TestClient(app, base_url=f"http://{HOST}")


def left_in_english(page: str) -> list[str]:
    """Return the texts of a page, and of its attributes, that are English."""
    texts = [*NOT_OURS.sub("\n", page).split("\n"), *ATTRIBUTES.findall(page)]
    ours = (text for text in texts if "=" not in text)  # labels
    return [text for text in ours if ENGLISH_TEXT.search(text) and not re.search("[가-힣]", text)]


@pytest.mark.parametrize(
    ("languages", "accepted", "expected"),
    [
        (Languages(), "ko-KR,ko;q=0.9", "en"),  # nobody has rules in Korean there
        (Languages(offered=("ko",)), "ko-KR,ko;q=0.9,en-US;q=0.8", "ko"),
        (Languages(offered=("ko",)), "en-US,en;q=0.9,ko;q=0.8", "en"),
        (Languages(offered=("ko",)), "en;q=0.3, ko;q=0.5", "ko"),
        (Languages(offered=("ko",)), "de, fr;q=0.7, ko;q=0.1", "ko"),
        (Languages(offered=("ko",)), "ko;q=0, en", "en"),
        (Languages(offered=("ko",)), ", ;;q=x, ko;q=1e9, \u00e4", "en"),
        (Languages(offered=("ko",)), "", "en"),
        (Languages("ko"), "en-US", "ko"),
        (Languages("en", ("ko",)), "ko", "en"),
    ],
)
def test_the_configuration_decides_or_else_the_browser(languages: Languages, accepted: str, expected: str) -> None:
    assert languages.words(accepted).language == expected


@pytest.mark.slow
@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_nothing_of_ours_is_english_on_a_korean_page(store: Store, fill: Fill, folder: object) -> None:
    incidents = play(story(folder), of=replace(plan(), languages=("ko",)))
    fill(*incidents)
    client = korean_client(store, Languages("ko"))
    for path in ("/", *(f"/incidents/{incident.id}" for incident in incidents)):
        page = client.get(path).text
        assert '<html lang="ko">' in page
        assert left_in_english(page) == []


def test_what_happened_is_told_in_korean_and_what_people_wrote_is_not(store: Store, fill: Fill) -> None:
    fill(replace(TOO_LARGE, translations={"ko": {TOO_LARGE.title: "레코드가 너무 큼"}}))
    store.acts().record(Act("1", TOO_LARGE.id, ActKind.NOTE, "mina", "page", AT + timedelta(minutes=1), "look at rack 7"))
    store.acts().record(Act("2", TOO_LARGE.id, ActKind.RESOLVE, "mina", "slack", AT + timedelta(minutes=2), "it is fixed"))
    page = korean_client(store, Languages("ko")).get(f"/incidents/{TOO_LARGE.id}").text
    for text in ("메모: look at rack 7", "해결됨: it is fixed", "mina", "(Slack)", "레코드가 너무 큼", "발생, 심각도 심각"):
        assert text in page


def changed(before: Incident, **to: object) -> list[str]:
    """Return the sentences of the timeline of a change, in Korean."""
    after = replace(before, revision=2, **to)
    changes = in_language(History(after, timeline([before, after])), KO).changes
    return [change.sentence for change in changes]


def test_every_kind_of_change_has_its_sentence() -> None:
    first = replace(TOO_LARGE, revision=1)
    for to in (
        {"severity": "low"},
        {"status": "resolved", "why": "seen again"},
        {"status": "merged", "merged_into": "inc-9"},
        {"rule": "x-y", "title": "브로커 무응답"},
        {"stage": "x-z"},
        {"count": 1200},
        {"symptoms": ()},
        {"pending": True},
    ):
        assert [text for text in changed(first, **to) if not re.search("[가-힣]", text)] == []
    pending = changed(replace(first, pending=True), pending=False)
    assert [text for text in pending if not re.search("[가-힣]", text)] == []


def test_every_attempt_has_its_sentence() -> None:
    attempts = [
        Attempt("kafka-ops", 1, reason, AT, outcome, why)
        for reason in Reason
        for outcome in DeliveryState
        for why in ("", "channel_not_found, see docs")
    ]
    changes = in_language(History(TOO_LARGE, timeline([TOO_LARGE], attempts)), KO).changes
    assert [change.sentence for change in changes if not change.sentence.startswith(("kafka-ops에 ", "발생"))] == []


def test_problems_are_told_in_korean(store: Store) -> None:
    client = korean_client(store, Languages("ko"))
    for path in ("/nowhere", "/incidents/inc-none", "/?severity=bad", "/?page=x", "/incidents/inc-none/lines/3"):
        assert left_in_english(client.get(path).text) == []


def test_signing_in_is_in_korean(signed: Callable[[], TestClient]) -> None:
    browser = signed()
    browser.app._app.state.languages = Languages("ko")  # type: ignore[attr-defined]
    form = {"name": "mina", "password": "wrong", "next": "/"}
    answers = [browser.get("/login"), browser.post("/login", data=form, headers={"Origin": f"http://{HOST}"})]
    assert [left_in_english(answer.text) for answer in answers] == [[], []]
    assert "비밀번호가 올바르지 않습니다" in answers[1].text


def test_pages_as_files_are_in_the_language_of_the_configuration(store: Store, fill: Fill, tmp_path: object) -> None:
    fill(replace(TOO_LARGE, translations={"ko": {TOO_LARGE.title: "레코드가 너무 큼"}}))
    write_pages(store, tmp_path, NOW, NO_LINKS, KO)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "레코드가 너무 큼" in index and '<html lang="ko">' in index
