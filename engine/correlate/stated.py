"""From lines in which servers that were asked state something to facts about a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from engine.model.incidents import DAWN
from engine.model.matches import ANSWER_SIGN, Match
from engine.model.pictures import StatedFact
from engine.model.rules import AnswerLines, Plan

ASKED = "asked"  # the label of lines of a server that was asked
_OF_THE_PARSER = (("connector", "is"), ("connector", "gone"), ("connector-topics", "gone"))  # out of documents of a server


def answers_of(plan: Plan) -> Mapping[tuple[str, str], AnswerLines]:
    """Return what the components of `plan` answer, by component and kind."""
    return {(component.name, kind): lines for component in plan.components for kind, lines in component.answers.items()}


def fact_of(match: Match, scope: str, answers: Mapping[tuple[str, str], AnswerLines]) -> StatedFact | None:
    """Return the fact that a line states; None for a line of another kind, and for one with a time that no server was asked
    for: an application may have printed it."""
    sign = ANSWER_SIGN.fullmatch(match.rule_id)
    lines = answers.get((sign["component"], sign["kind"])) if sign is not None else None
    if sign is None or lines is None:
        return None
    if match.dated and ASKED not in match.labels and (sign["kind"], sign["edge"]) not in _OF_THE_PARSER:
        return None
    values = {**{name: match.labels[name] for name in lines.by if name in match.labels}, **match.captures}
    if any(name not in values for name in lines.by):
        return None
    name = "/".join(str(values[label]) for label in lines.by)
    return StatedFact(scope, sign["kind"], name, match.at if match.dated else DAWN, values if sign["edge"] == "is" else {})
