"""The language of a page: that of the configuration, or the one that the reader's browser prefers."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from msgspec import Struct
from starlette.requests import Request

from engine.language import words_of
from engine.model.words import ENGLISH, Words, marked

PROBLEMS = marked(  # the titles of the pages of requests that failed: phrases of HTTP
    "Bad Request",
    "Forbidden",
    "Not Found",
    "Method Not Allowed",
    "Internal Server Error",
    "Service Unavailable",
)
MOST_PREFERENCES = 20


class Languages(Struct, frozen=True):
    """The languages of the pages. `fixed` is that of every reader; where it is empty, a reader's browser chooses between
    English and `offered`, those in which the incidents have their texts."""

    fixed: str = ""
    offered: tuple[str, ...] = ()

    def words(self, accepted: str) -> Words:
        """Return the words for a reader whose browser accepts the languages of an Accept-Language header."""
        if self.fixed:
            return words_of(self.fixed)
        known = (ENGLISH.language, *self.offered)
        return words_of(next((each for each in _preferred(accepted) if each in known), ENGLISH.language))


ENGLISH_ONLY = Languages()


def words_for(request: Request) -> Words:
    """Return the words for the reader of a request."""
    languages: Languages = request.app.state.languages
    return languages.words(request.headers.get("accept-language", ""))


def phrase(status: int) -> str:
    """Return the title of the page of a request that was answered with `status`."""
    return HTTPStatus(status).phrase


def _preferred(accepted: str) -> Iterator[str]:
    """Yield the languages of an Accept-Language header without their countries, the most preferred first (RFC 9110, 12.5.4)."""
    weighted = []
    for number, part in enumerate(accepted.split(",")[:MOST_PREFERENCES]):
        name, _, quality = part.partition(";")
        weight = _weight(quality.strip())
        if weight:
            weighted.append((-weight, number, name.strip().lower().partition("-")[0]))
    yield from (name for *_, name in sorted(weighted))


def _weight(quality: str) -> float:
    """Return the weight of `q=0.8`; 1 where there is none, 0 where it is none."""
    if not quality:
        return 1.0
    key, _, number = quality.partition("=")
    digits = number.strip()
    is_number = key.strip() == "q" and digits.replace(".", "", 1).isdecimal() and len(digits) <= 5
    return min(float(digits), 1.0) if is_number else 0.0
