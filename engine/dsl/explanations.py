"""The long answer to a code: what it means, why it matters, how to cure it, and a wrong and a right piece of a rule."""

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


class Explained(Struct, frozen=True):
    """One code. `why` holds reason and cure; `wrong` and `right` are top-level keys of a rule, both empty where one rule cannot
    show it."""

    code: Code
    why: str
    wrong: str = ""
    right: str = ""

    def paragraphs(self) -> Iterator[tuple[str, str]]:
        """Yield (heading, text), the first without heading."""
        level = "advice; the rules load all the same" if self.code.is_warning else "an error; nothing is loaded"
        yield "", f"{self.code.id}: {self.code.meaning}\nThis is {level}."
        yield "", self.why
        if self.wrong:
            yield "Wrong:", self.wrong
            yield "Right:", self.right

    def as_json(self) -> Mapping[str, Any]:
        """Return the explanation for programs."""
        level = "warning" if self.code.is_warning else "error"
        shown = {"why": self.why, "wrong": self.wrong, "right": self.right}
        return {"code": self.code.id, "severity": level, "meaning": self.code.meaning, **shown}


def explanation(code: str) -> Explained:
    """Return what is to say about `code`, in any case. Raises UsageError, naming the nearest, for an unknown one."""
    known = {each.id: each for each in Code}
    wanted = code.upper()
    if wanted not in known:
        raise UsageError(f"there is no code `{code}`; {did_you_mean(wanted, known, 'docs/rules.md lists them')}")
    return Explained(known[wanted], **_data()[wanted])


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = yaml.safe_load(DATA.read_text("utf-8"))
    return found
