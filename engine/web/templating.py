"""The templates of the pages, and what they call: one environment for each language.

The value of every template expression passes through `visible` and is then escaped, so that no template can forget it; text of
several lines goes through `lines`, which does the same line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from engine.acting import sentence
from engine.language import words_of
from engine.model.acts import SILENCE_SPANS, USUAL_SPAN, Act, ActKind
from engine.model.answers import iso
from engine.model.considered import CONSIDERED_WORDS
from engine.model.incidents import STATES
from engine.model.matches import Value
from engine.model.past import NEAR_WORDS
from engine.model.phrases import moment, named
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked
from engine.picture import sparkline
from engine.web.listing import FACETS, Query, label_text, lasted, state

STATIC = Path(__file__).parent / "static"
EVENTS_SHOWN = 3
LINES_SHOWN = 12  # of an event; the rest, mostly a stack trace, is folded
FACET_WORDS = marked("Component", "Cluster", "Rule", "Receiver")


def lines(text: str) -> Markup:
    """Return text of several lines as HTML: each line made visible and escaped, line ends kept."""
    return Markup("\n").join(escape(visible(line)) for line in text.split("\n"))


def marked_in(text: str, captures: Mapping[str, Value]) -> Markup:
    """Return text as `lines` does, with the captured values in it marked, except single characters."""
    values = sorted({str(value) for value in captures.values() if len(str(value)) > 1}, key=len, reverse=True)
    if not values:
        return lines(text)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)")
    parts = pattern.split(text)  # those at odd positions are captured values
    return Markup("").join(Markup("<mark>{}</mark>").format(lines(p)) if n % 2 else lines(p) for n, p in enumerate(parts))


def assigned(settings: Mapping[str, str]) -> str:
    """Return settings as the lines of a properties file."""
    return "\n".join(f"{key}={value}" for key, value in settings.items())


def ago(at: datetime, now: datetime, words: Words = ENGLISH) -> str:
    """Return how long ago `at` is, or how far in the future when a clock is ahead."""
    return _since(now - at, words, words.span)


def about_ago(at: datetime, now: datetime, words: Words = ENGLISH) -> str:
    """Return how long ago `at` is in the largest unit, for lists."""
    return _since(now - at, words, words.about)


def _since(span: timedelta, words: Words, told: Callable[[timedelta], str]) -> str:
    return words("{span} ago", span=told(span)) if span >= timedelta() else words("in {span}", span=told(-span))


def folded(text: str) -> tuple[str, str, int]:
    """Return the first LINES_SHOWN lines of an event, the other lines, and the number of these."""
    split = text.rstrip("\n").split("\n")
    return "\n".join(split[:LINES_SHOWN]), "\n".join(split[LINES_SHOWN:]), max(0, len(split) - LINES_SHOWN)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text; all of it when it has one."""
    head, end, _ = text.partition(". ")
    return head + end.strip()


def linkable(address: str) -> bool:
    """Return whether a reference becomes a link: only http and https addresses do."""
    return address.startswith(("https://", "http://"))


@lru_cache(4096)
def only_label(name: str, value: str) -> str:
    """Return the address of the list of the incidents with a label."""
    return Query(labels=((name, value),)).address()


def only_rule(rule: str) -> str:
    """Return the address of the list of the incidents of a rule."""
    return Query(rule=rule).address()


def act_text(act: Act, words: Words = ENGLISH) -> str:
    """Return what was done in the language of `words`; what people wrote stays as they wrote it."""
    return act.text if act.kind is ActKind.NOTE else words.sentence(sentence(act))


@cache
def templates_in(language: str) -> Environment:
    """Return the templates in one of the LANGUAGES."""
    words = words_of(language)
    templates = Environment(
        loader=PackageLoader("engine.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"lines": lines, "moment": moment, "iso": iso, "named": named, "folded": folded, "marked": marked_in}
    templates.globals |= _in_words(words) | {
        "linkable": linkable,
        "state": state,
        "asset": _asset,
        "assigned": assigned,
        "events_shown": EVENTS_SHOWN,
        "first_sentence": first_sentence,
        "facets": FACETS,
        "only_label": only_label,
        "only_rule": only_rule,
        "label_text": label_text,
        "states": STATES,
        "severities": SEVERITIES[::-1],
        "spans": SILENCE_SPANS,
        "usual_span": USUAL_SPAN,
        "near_words": NEAR_WORDS,
        "considered_words": CONSIDERED_WORDS,
    }
    return templates


def _in_words(words: Words) -> dict[str, Any]:
    """Return what templates call for text of ours: `_` for a text of the catalogue, `counted` for one with a number, `sentence`
    for one that is put together, `named_in` for a name of the model such as `retry_later`, and times and durations."""
    return {
        "_": words,
        "counted": words.counted,
        "sentence": words.sentence,
        "language": words.language,
        "named_in": lambda name: words(name.replace("_", " ")),
        "ago": lambda at, now: ago(at, now, words),
        "about_ago": lambda at, now: about_ago(at, now, words),
        "duration": lambda incident: _span(lasted(incident), words),
        "span": lambda seconds: _span(None if seconds is None else timedelta(seconds=seconds), words),
        "spark": lambda incident: Markup(sparkline(incident, words)),  # noqa: S704 - it escapes every text
        "act_text": lambda act: act_text(act, words),
    }


def _span(span: timedelta | None, words: Words) -> str:
    """Return a duration; empty for None."""
    return "" if span is None else words.span(span)


def _shown(value: Any) -> Any:
    """Return the output of a template expression: HTML unchanged, every other value as visible text."""
    return value if isinstance(value, Markup) else visible(str(value))


def _asset(name: str) -> Markup:
    """Return the content of a file of static/, to be embedded in a page that has no server."""
    return Markup((STATIC / name).read_text(encoding="utf-8"))  # noqa: S704 - our own
