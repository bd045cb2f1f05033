"""The tests that a rule carries, as values: what goes in, and what has to come out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

NOTHING, FIRES, OVER = "nothing", "fires", "over"
SOURCE = "log"


class TimelineStep(Struct, frozen=True):
    """One step of a timeline: `at_s` seconds after the begin either `source` prints `log`, or the rule is expected to be as
    `expects` says.

    `expects` is empty for a log line; `facts` go with FIRES.
    """

    at_s: float
    written: str
    source: str = SOURCE
    log: str = ""
    expects: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


class RuleTest(Struct, frozen=True):
    """One case of a rule's `tests`. `fires` is None for a case that must stay silent; `logs` is text by source name.

    A case with a `timeline` has neither: its steps say what is printed and expected when.
    """

    rule_id: str
    path: str
    line: int
    logs: Mapping[str, str]
    labels: Mapping[str, str]
    fires: Mapping[str, str] | None
    cause: str | None = None
    fix: str | None = None
    count: int | None = None
    severity: str | None = None
    timeline: tuple[TimelineStep, ...] = ()

    @property
    def shows_firing(self) -> bool:
        """Whether the rule has to fire in this case."""
        return self.fires is not None or any(step.expects == FIRES for step in self.timeline)

    @property
    def shows_silence(self) -> bool:
        """Whether the rule has to stay silent in this case, be it until it fires."""
        return any(step.expects == NOTHING for step in self.timeline) if self.timeline else self.fires is None


Tests = Mapping[str, tuple[RuleTest, ...]]  # by rule id
