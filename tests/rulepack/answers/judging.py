"""The answers that experts would give to cases of the corpus, and where the first incident's differ (README.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml
from msgspec import Struct, convert

from engine.model.incidents import Incident
from tests.corpus.cases import Outcome, cases, outcomes_of

HERE = Path(__file__).parent
Text = str | int | list[str | int]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """What the message about a case of the corpus says, and what it does not say."""

    rule: str
    case: str
    cause: tuple[Text, ...]
    fix: tuple[Text, ...]
    never: tuple[str, ...]
    facts: tuple[Text, ...] = ()
    missed: str = ""

    @property
    def id(self) -> str:
        """The id of the case."""
        return f"{self.rule}--{self.case}"


@cache
def answers() -> Mapping[str, Answer]:
    """Return the answers by the id of their case, in the order of the files.

    Raises AssertionError where a case is answered twice, rules out fewer than three texts, or one by where a line begins or
    ends: title, cause, impact and fix are judged as one line.
    """
    texts = (path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.yml")))
    written = [convert(document, Answer) for text in texts for document in yaml.load_all(text, yaml.CSafeLoader)]
    by_id = {answer.id: answer for answer in written}
    assert len(by_id) == len(written), "a case is answered twice"
    assert [answer.id for answer in written if len(answer.never) < 3] == [], "rule out three texts at least"
    anchored = [answer.id for answer in written for never in answer.never if re.search(r"^\^|(?<!\\)\$$|\\n(?!\])", never)]
    assert anchored == [], "the texts are judged as one line"
    return by_id


@cache
def answered() -> Mapping[str, Sequence[str]]:
    """Return what is wrong with the message about each answered case, by its id; one sentence each. Raises KeyError for an
    answer to no case."""
    judged = outcomes_of(cases()[id_] for id_ in answers())
    return {id_: deviations(answer, judged[id_]) for id_, answer in answers().items()}


def deviations(answer: Answer, outcome: Outcome) -> list[str]:
    """Return what is wrong with the first incident of a case; one sentence each."""
    if outcome.faults or not outcome.incidents:
        return [*outcome.faults]
    first = outcome.incidents[0]
    why, how = _plain([first.title, first.cause, first.impact]), _plain(fix_lines(first))
    labels = _plain(first.labels.values())
    return [
        *(f"cause lacks {text!r}" for text in answer.cause if not _holds(why, text)),
        *(f"fix lacks {text!r}" for text in answer.fix if not _holds(how, text)),
        *(f"the fact {text!r} is missing" for text in answer.facts if not _holds(f"{why} {how} {labels}", text)),
        *(f"it says {ruled_out!r}" for ruled_out in answer.never if re.search(ruled_out, f"{why} {how}", re.IGNORECASE)),
    ]


def fix_lines(incident: Incident) -> Iterator[str]:
    """Yield the fix line by line: what to do, its command, and each setting as `client: name=value`."""
    for step in incident.fix:
        yield step.do
        yield step.run
        for name, value in {**step.set, **step.also, **step.file}.items():
            yield f"{step.where}: {name}={value}"


def _holds(text: str, wanted: Text) -> bool:
    either = wanted if isinstance(wanted, list) else [wanted]
    return any(_plain([str(part)]).lower() in text.lower() for part in either)


def _plain(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())
