"""Where a rule file has its prose, and where the same text is in another language: in the map `ko` beside the keys."""

from __future__ import annotations

from engine.dsl.document import Loc
from engine.dsl.schema import RuleFile

TRANSLATED = ("ko",)  # languages that a rule may have besides English: a key each


def prose_locs(file: RuleFile) -> list[Loc]:
    """Return the place of each text for people in `file`."""
    locs: list[Loc] = [["title"]]
    locs += (["told_as", index, "title"] for index in range(len(file.told_as)))
    if (runbook := file.runbook) is None:
        return locs
    locs += (["runbook", "cause"], ["runbook", "impact"])
    for index, case in enumerate(runbook.cases):
        locs += (["runbook", "cases", index, key] for key in ("title", "cause", "impact") if getattr(case, key))
    locs += (["runbook", "fix", index, "do"] for index in range(len(runbook.fix)))
    locs += (["runbook", "next_checks", index] for index in range(len(runbook.next_checks)))
    return locs


def translated_loc(loc: Loc, language: str) -> Loc:
    """Return the place of the text of `loc` in another language."""
    last_key = max(index for index, step in enumerate(loc) if isinstance(step, str))
    return [*loc[:last_key], language, *loc[last_key:]]
