"""The commands of a fix as the speaker of its lines has them."""

from __future__ import annotations

from msgspec.structs import replace

from engine.incident.dialects import spelled
from engine.model.dialects import Dialect
from engine.model.incidents import RenderedStep
from tests.unit.incident.scene import plan

WINDOWS = Dialect("windows", "Windows", lines=(r"[A-Z]:\\",), commands={r"^(kafka-[a-z]+)\.sh": r"bin\windows\\1.bat \2"})


def test_a_command_keeps_what_its_expression_groups() -> None:
    with_dialect = replace(plan(), dialects=(WINDOWS,))
    steps = [RenderedStep("Look", run="kafka-topics.sh --list"), RenderedStep("Look again", run="kafka-acls.sh --list")]
    first, second = spelled(steps, [r"in C:\kafka"], {}, with_dialect)
    assert (first.do, first.run) == ("Look (spelled for Windows)", r"bin\windows\kafka-topics.bat \2 --list")
    assert (second.do, second.run) == ("Look again", r"bin\windows\kafka-acls.bat \2 --list")
    assert spelled(steps, ["in /srv/kafka"], {}, with_dialect) == tuple(steps)
