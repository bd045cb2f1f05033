"""Every code is explained, and its wrong and right pieces are what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from engine.cli.linting import lint
from engine.dsl.codes import Code
from engine.dsl.explanations import DATA, CodeExplanation, explanation
from engine.errors import UsageError

EXPLANATIONS = [explanation(code.id) for code in Code]
SHOWN = [each for each in EXPLANATIONS if each.wrong]
BASE = """\
id: example
title: Something happened
severity: high
component: any
detection: {seen: something bad, condition: seen}
entity: [cluster]
runbook: {cause: It broke., impact: It is down.}
tests: [{log: something bad happened, fires: {}}, {log: all is well, silent: true}]
"""


OTHER = """\
id: other
title: Something else about {topic}
severity: high
component: any
detection: {seen: "else {topic}", condition: seen}
entity: [cluster, topic]
runbook: {cause: It broke., impact: It is down.}
tests: [{log: else orders, fires: {topic: orders}}, {log: all is well, silent: true}]
"""


def found(piece: str, folder: Path) -> set[str]:
    """Return the codes of a rule whose keys are those of `piece`, and otherwise of a good rule."""
    own = {line.partition(":")[0] for line in piece.splitlines() if line[:1].isalpha()}
    rest = [line for line in BASE.splitlines() if line.partition(":")[0] not in own]
    path = folder / "example.yml"
    path.write_text("\n".join(["id: example", *rest[1:], piece]))
    (folder / "other.yml").write_text(OTHER)
    return {diagnostic.code for diagnostic in lint([folder]) if diagnostic.path == str(path)}


def test_every_code_says_why() -> None:
    assert [each.code.id for each in EXPLANATIONS if len(each.why) < 20] == []
    assert {*yaml.safe_load(DATA.read_text())} == {each.code.id for each in EXPLANATIONS}


def test_most_codes_show_what_is_wrong() -> None:
    assert len(SHOWN) >= 40


@pytest.mark.parametrize("each", SHOWN, ids=lambda each: each.code.id)
def test_the_wrong_piece_has_the_finding_and_the_right_one_has_none(each: CodeExplanation, tmp_path: Path) -> None:
    assert each.code.id in found(each.wrong, tmp_path)
    assert found(each.right, tmp_path) <= {"TOC601", "TOC602"} - {each.code.id}


def test_codes_are_known_in_any_case_and_the_nearest_is_named() -> None:
    assert explanation("toc204").code is Code.NOT_ONE_OF
    with pytest.raises(UsageError, match="did you mean `TOC204`"):
        explanation("TOC2044")


def test_a_code_that_one_rule_cannot_show_has_no_pieces() -> None:
    headings = [heading for heading, _ in explanation("TOC702").paragraphs()]
    assert headings == ["", ""]
