"""The catalogues have every text that tocsin says itself, with the same holes, and recognise the sentences that are stored."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from string import Formatter

import polib
import pytest

from engine.dsl import builtin_rules
from engine.dsl.schema import PLACES
from engine.dsl.translations import TRANSLATED
from engine.language import LANGUAGES, words_of
from engine.language.catalogue import SENTENCE, catalogue_file
from engine.model.incidents import STATES
from engine.model.rules import SEVERITIES
from engine.model.words import ENGLISH, FREE, IDS, NUMBERS, TERMS, TIMES, TITLE, Words, filled, values_in, worded
from tests.unit.language.extracting import catalogue, messages, unreadable

OTHERS = [language for language in LANGUAGES if language != ENGLISH.language]
KO = words_of("ko")
SENTENCES_OF_TITLES = {
    "{severity}: {title}": {"severity": "high"},
    "{severity}: {title} ({labels})": {"severity": "high", "labels": "broker=1; topic=a of b"},
    "{severity}: such as {title} ({labels} and {number:,} more)": {"severity": "high", "labels": "a and b", "number": 1200},
    "{severity}, {status}: {title} ({id})": {"severity": "high", "status": "open", "id": "abc"},
    "the root cause is another one now: {title}": {},
}


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_every_text_of_the_code_and_no_other(language: str) -> None:
    file = catalogue_file(language)
    wanted = catalogue(polib.pofile(str(file)), messages())
    if os.environ.get("TOCSIN_ACCEPT"):
        wanted.save(str(file))
    assert file.read_text("utf-8") == str(wanted), "run make accept, and translate what is empty"
    assert [entry.msgid for entry in wanted if not (entry.msgstr or entry.msgstr_plural.get(0))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_holes_of_its_text(language: str) -> None:
    entries = polib.pofile(str(catalogue_file(language)))
    assert [e.msgid for e in entries if holes(e.msgid) != holes(e.msgstr or e.msgstr_plural[0])] == []


def test_no_text_is_put_together_before_it_is_looked_up() -> None:
    assert unreadable() == []


def test_every_state_severity_and_place_has_a_word_in_each_language() -> None:
    looked_up = {*SEVERITIES, *map(str.upper, SEVERITIES), *STATES, *(state.capitalize() for state in STATES), *PLACES} - {
        "Open"
    }
    assert [(language, text) for language in OTHERS for text in looked_up if text not in words_of(language).texts] == []
    assert list(TRANSLATED) == OTHERS


def example(hole: str, number: int) -> tuple[str, str]:
    """Return a value of a hole of a sentence, and what stands for it in Korean."""
    if hole in NUMBERS:
        return f"1,{number:03}", f"1,{number:03}"
    if hole in TERMS:
        return "open", KO("open")
    if hole in FREE | TIMES | IDS | {TITLE}:
        return f"x{number}y", f"x{number}y"
    return ("1 incident", KO("1 incident")) if hole == "incidents" else ("resolved", KO("resolved"))


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_that_is_stored_is_recognised_with_its_values(language: str) -> None:
    words = words_of(language)
    for entry in polib.pofile(str(catalogue_file(language))):
        if entry.msgctxt == SENTENCE:
            values = {hole: example(hole, number) for number, hole in enumerate(sorted(holes(entry.msgid)))}
            sentence = filled(entry.msgid, {hole: value for hole, (value, _) in values.items()})
            assert words.sentence(sentence) == filled(entry.msgstr, {hole: value for hole, (_, value) in values.items()})


def shipped_titles() -> list[str]:
    """Return the titles and causes of the shipped rules, with an address where they have a placeholder."""
    files = [file.read_text("utf-8") for file in sorted(builtin_rules().rglob("*.yml"))]
    lines = [line for text in files for line in re.findall(r"^\s*(?:title|cause): (.+)$", text, re.MULTILINE)]
    return sorted({re.sub(r"\{[^}]+\}", "kafka-1:9092", line.strip("'\"")) for line in lines if line[:1].isupper()})


def test_no_title_of_a_shipped_rule_is_changed_alone_or_in_a_sentence() -> None:
    titles = [*shipped_titles(), "A log (of 3) is full: high, open (now)"]
    assert len(titles) > 250
    assert [title for title in titles if KO.sentence(title) != title] == []
    translated = KO.beside({title: f"({title})" for title in titles})
    for title in titles:
        for pattern, values in SENTENCES_OF_TITLES.items():
            sentence = worded(pattern, **values, title=title)
            korean = filled(KO.texts[pattern], {**values, "severity": KO("high"), "status": KO("open"), "title": title})
            assert KO.sentence(sentence) == korean
            assert translated.sentence(sentence) == korean.replace(title, f"({title})")


def test_english_is_what_stands_in_the_code() -> None:
    assert ENGLISH("Fix {number}", number=2) == "Fix 2"
    assert ENGLISH.sentence("resolved") == "resolved"
    assert ENGLISH.span(timedelta(hours=2, minutes=4)) == "2 h 4 min"
    assert ENGLISH.counted("{number:,} line", "{number:,} lines", 1) == "1 line"
    assert ENGLISH.counted("{number:,} line", "{number:,} lines", 1200) == "1,200 lines"


def test_korean_words_times_and_sentences() -> None:
    assert KO("Fix {number}", number=2) == "조치 2"
    assert KO.span(timedelta(hours=2, minutes=4)) == "2시간 4분"
    assert KO.counted("{number:,} line", "{number:,} lines", 1200) == "1,200줄"
    assert KO.sentence("severity is high now, was low") == "심각도 변경: 낮음 → 높음"
    assert KO.sentence("still open, 4 h after the last message") == "마지막 알림 후 4시간 지났으나 계속 발생 중"
    assert KO.sentence("resolved (quiet, not confirmed)") == "해결됨 (더 이상 발생하지 않음, 복구 로그는 없음)"


def test_what_people_wrote_is_not_translated() -> None:
    assert KO.sentence("by open: critical") == "open: critical"


def test_a_text_without_a_translation_stays_as_it_is() -> None:
    assert KO.sentence("nothing that tocsin says") == "nothing that tocsin says"
    assert KO("nothing that tocsin says {x}", x=1) == "nothing that tocsin says 1"


def test_values_are_taken_out_of_a_sentence_only_when_all_of_it_fits() -> None:
    assert values_in("a 1 b 2 c", "a {x} b {y} c") == {"x": "1", "y": "2"}
    assert values_in("a 1 b 2", "a {x} b {y} c") is None
    assert values_in("a  b", "a {x} b") is None
    assert values_in("a b", "{x} b c") is None
    assert values_in("plain", "plain") is None


def test_own_texts_stand_beside_the_catalogue() -> None:
    words = KO.beside({"Broker 1 went silent": "브로커 1 무응답", "Fix": "not this"})
    assert words.sentence(worded("the root cause is another one now: {title}", title="Broker 1 went silent")).endswith(
        "브로커 1 무응답"
    )
    assert words("Fix") == "조치"
    assert KO.beside({}) is KO and Words().beside({})("Fix") == "Fix"
