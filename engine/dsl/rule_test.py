"""The tests in a rule file, as values: input and expected outcome."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

NOTHING, FIRES, OVER = "nothing", "fires", "over"
SOURCE = "log"


class TimelineStep(Struct, frozen=True):
    """One step of a timeline, `at_s` seconds after its begin: either `source` prints `log`, or a state is expected.

    `expects` is NOTHING, FIRES or OVER, or empty for a log line; `facts` are the expected captures and labels of FIRES.
    """

    at_s: float
    written: str
    source: str = SOURCE
    log: str = ""
    expects: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


class RuleTest(Struct, frozen=True):
    """One test of a rule. `fires` is None when the rule must stay silent; `logs` is log text by source name.

    A test with a `timeline` has neither: its steps give input and expectations.
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
        """Whether the rule must fire in this test."""
        return self.fires is not None or any(step.expects == FIRES for step in self.timeline)

    @property
    def shows_silence(self) -> bool:
        """Whether the rule must stay silent in this test; in a timeline, at any of its times."""
        return any(step.expects == NOTHING for step in self.timeline) if self.timeline else self.fires is None


Tests = Mapping[str, tuple[RuleTest, ...]]  # by rule id
