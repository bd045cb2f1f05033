"""Of what was said before only that is said again which has changed: a hot entity has many alerts that are long over."""

from __future__ import annotations

from collections.abc import Sequence

from engine.correlate import Correlator, StateCache
from engine.model.incidents import Evidence, Finding, Verdict
from engine.model.rules import Clear
from tests.building import at, match, plan, seen, signature
from tests.unit.correlate.saying import together

OFTEN = plan(signature("seen", clear=Clear(0, 60.0)))
FOUR = [match("seen", s) for s in (0, 100, 200, 300)]


def flushed(correlator: Correlator, items: Sequence[object]) -> list[Finding]:
    for item in items:
        correlator.observe(item)  # type: ignore[arg-type]
    return correlator.flush()


def starts(findings: Sequence[Finding]) -> list[object]:
    return [alert.starts_at for finding in findings if isinstance(finding, Verdict) for alert in finding.alerts]


def test_alerts_that_have_not_changed_are_not_said_again() -> None:
    correlator = Correlator(OFTEN, "default")
    said = flushed(correlator, [*FOUR, seen("a.log", 0, 1000)])
    assert starts(said) == [at(0), at(100), at(200), at(300)]
    more = flushed(correlator, [match("seen", 500)])
    assert starts(more) == [at(500)]
    late = flushed(correlator, [match("seen", 210)])
    assert starts(late) == [at(200), at(300), at(500)], "what comes after a change is said with it: a verdict replaces its end"
    (alerts,) = together([*said, *more, *late]).values()
    assert [(alert.starts_at, alert.count) for alert in alerts] == [
        (at(0), 1),
        (at(100), 1),
        (at(200), 2),
        (at(300), 1),
        (at(500), 1),
    ]


def test_alerts_that_a_late_line_joins_are_one_in_the_end() -> None:
    correlator = Correlator(OFTEN, "default")
    said = flushed(correlator, [*FOUR, seen("a.log", 0, 1000)])
    said += flushed(correlator, [match("seen", 250)])
    (alerts,) = together(said).values()
    assert [(alert.starts_at, alert.count) for alert in alerts] == [(at(0), 1), (at(100), 1), (at(200), 3)]


def test_an_alert_that_is_taken_back_is_gone_and_those_before_it_stay() -> None:
    correlator = Correlator(OFTEN, "default")
    said = flushed(correlator, [*FOUR, seen("a.log", 0, 1000)])
    correlator.retract(FOUR[3])
    said += correlator.flush()
    (alerts,) = together(said).values()
    assert [alert.starts_at for alert in alerts] == [at(0), at(100), at(200)]


def test_an_alert_is_said_again_when_the_event_that_proves_it_goes_on() -> None:
    correlator = Correlator(OFTEN, "default")
    flushed(correlator, [*FOUR, seen("a.log", 0, 1000)])
    correlator.retract(FOUR[2])
    said = flushed(correlator, [FOUR[2]])
    assert starts(said) == [at(200), at(300)]
    assert [finding.event_id for finding in said if isinstance(finding, Evidence)] == [FOUR[2].event_id]


def test_who_does_not_know_what_was_said_says_everything() -> None:
    state: dict[str, str] = {}
    resting = StateCache()
    flushed(Correlator(OFTEN, "default", state, resting), [*FOUR, seen("a.log", 0, 1000)])
    before = dict(state)
    assert starts(flushed(Correlator(OFTEN, "default", dict(state)), [match("seen", 500)])) == [
        *map(at, (0, 100, 200, 300, 500))
    ]
    assert starts(flushed(Correlator(OFTEN, "default", state, resting), [match("seen", 500)])) == [at(500)]
    again = flushed(Correlator(OFTEN, "default", before, resting), [match("seen", 500)])
    assert starts(again) == [*map(at, (0, 100, 200, 300, 500))], "what rests has done the batch that is done again"
