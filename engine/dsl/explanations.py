"""The text of `rules explain-code`: the meaning of a code, why it matters, its cure, and a wrong and a right example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from engine.dsl.codes import Code
from engine.dsl.report import did_you_mean
from engine.errors import UsageError

DATA = Path(__file__).with_name("explanations.yml")


class CodeExplanation(Struct, frozen=True):
    """The explanation of one code. `why` holds reason and cure; `wrong` and `right` are top-level keys of a rule as YAML, both
    empty where a single rule cannot show the error."""

    code: Code
    why: str
    wrong: str = ""
    right: str = ""

    def paragraphs(self) -> Iterator[tuple[str, str]]:
        """Yield (heading, text) in reading order; the heading is empty for plain paragraphs."""
        level = "advice; the rules load all the same" if self.code.is_warning else "an error; nothing is loaded"
        yield "", f"{self.code.id}: {self.code.meaning}\nThis is {level}."
        yield "", self.why
        if self.wrong:
            yield "Wrong:", self.wrong
            yield "Right:", self.right

    def as_json(self) -> Mapping[str, Any]:
        """Return the explanation for programs."""
        level = "warning" if self.code.is_warning else "error"
        texts = {"why": self.why, "wrong": self.wrong, "right": self.right}
        return {"code": self.code.id, "severity": level, "meaning": self.code.meaning, **texts}


def explanation(code: str) -> CodeExplanation:
    """Return the explanation of `code`, in upper or lower case. Raises UsageError, with the nearest code, if there is none."""
    codes = {code_.id: code_ for code_ in Code}
    id_ = code.upper()
    if id_ not in codes:
        raise UsageError(f"there is no code `{code}`; {did_you_mean(id_, codes, 'docs/rules.md lists them')}")
    return CodeExplanation(codes[id_], **_data()[id_])


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    entries: Mapping[str, Mapping[str, str]] = yaml.safe_load(DATA.read_text("utf-8"))
    return entries
