"""Read a gettext catalogue. Entries with the context SENTENCE or FRAME are stored in English, and are recognised."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from engine.model.words import ENGLISH, Words, specificity

LANGUAGES = ("en", "ko")
SENTENCE, FRAME = "sentence", "frame"


def catalogue_file(language: str) -> Path:
    """Return the catalogue of a language other than English."""
    return Path(__file__).with_name(f"{language}.po")


@cache
def words_of(language: str) -> Words:
    """Return the words of one of LANGUAGES."""
    if language == ENGLISH.language:
        return ENGLISH
    import polib  # noqa: PLC0415 - needed for other languages only

    texts: dict[str, str] = {}
    patterns: dict[str, list[tuple[str, str]]] = {SENTENCE: [], FRAME: []}
    for entry in polib.pofile(str(catalogue_file(language))):
        translation = entry.msgstr_plural[0] if entry.msgid_plural else entry.msgstr
        for text in filter(None, (entry.msgid, entry.msgid_plural)):
            texts[text] = translation
            if entry.msgctxt in patterns and "{" in text:
                patterns[entry.msgctxt].append((text, translation))
    return Words(language, texts, _ordered(patterns[SENTENCE]), _ordered(patterns[FRAME]))


def _ordered(patterns: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(patterns, key=lambda item: (-specificity(item[0]), item[0])))
