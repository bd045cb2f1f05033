"""Placeholders: values of a fix that the lines do not give. Settings and commands hold them as `${name:?}`, which a shell
refuses to run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.model.incidents import Incident, RenderedStep

FILE_OF_COMMANDS = "client.properties"  # of Kafka's tools where they must sign in

_PLACEHOLDER = re.compile(r"\$\{(\w+):\?\}")
# values of an installation, which no line has, and where they are given
_GIVEN = {
    "bootstrap": "scan --bootstrap HOST:PORT",
    "connect_url": "scan --connect-url URL",
    "brokers": "scan --roster 1,2,3",
}


def placeholder(name: str) -> str:
    """Return the placeholder for the value `name`, a word."""
    return f"${{{name}:?}}"


def unfilled(texts: Iterable[str]) -> list[str]:
    """Return the names of the placeholders in `texts`, each once, in order."""
    return list(dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(text)))


def unfilled_in(incident: Incident) -> list[str]:
    """Return the names of the placeholders in fix and verification, each once, in order."""
    return unfilled([*(text for step in incident.fix for text in _texts(step)), incident.verify])


def unfilled_of(step: RenderedStep) -> list[str]:
    """Return the names of the placeholders in a step, each once, in order."""
    return unfilled(_texts(step))


def why_unfilled(names: Iterable[str]) -> str:
    """Return one sentence on why placeholders stand in a fix and what to do; empty without any."""
    ordered = list(dict.fromkeys(names))
    given = [name for name in ordered if name in _GIVEN]
    others = [placeholder(name) for name in ordered if name not in _GIVEN]
    sentences = []
    if given:
        remedy = " ".join(_GIVEN[name] for name in given).replace(" scan ", " ")
        sentences.append(f"{_listed(map(placeholder, given))}: {remedy}, or `clusters` of tocsin.yml, fills it in.")
    if others:
        sentences.append(f"{_listed(others)}: these lines do not tell it; write the value there.")
    return " ".join(sentences)


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _texts(step: RenderedStep) -> list[str]:
    return [*step.set.values(), *step.also.values(), *step.file.values(), step.run]
