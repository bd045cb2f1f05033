"""Read a gettext catalogue. Entries with the context SENTENCE are sentences that are stored in English, and are recognised."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from engine.model.words import ENGLISH, Words, specificity

LANGUAGES = ("en", "ko")
SENTENCE = "sentence"


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
    patterns: dict[str, str] = {}
    for entry in polib.pofile(str(catalogue_file(language))):
        translation = entry.msgstr_plural[0] if entry.msgid_plural else entry.msgstr
        for text in filter(None, (entry.msgid, entry.msgid_plural)):
            texts[text] = translation
            if entry.msgctxt == SENTENCE:
                patterns[text] = translation
    ordered = sorted(patterns.items(), key=lambda item: (-specificity(item[0]), item[0]))
    return Words(language, texts, tuple((text, translation) for text, translation in ordered if "{" in text))
