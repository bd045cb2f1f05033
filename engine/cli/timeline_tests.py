"""Run the timelines that rules carry: what the rule says at each step, and again with lines late or in another order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from engine.correlate import Correlator
from engine.correlate.clocks import LATENESS
from engine.dsl.rule_test import FIRES, NOTHING, RuleTest, TimelineStep
from engine.match import match
from engine.model.incidents import Alert, AlertKey, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
NOT_TOLD = ("pending", "retracted")

Problem = tuple[str, str]
Items = Sequence[Match | ActivitySpan | Progress]
Alerts = Mapping[AlertKey, tuple[Alert, ...]]


def timeline_problems(test: RuleTest, plan: Plan) -> Iterator[Problem]:
    """Yield what each step of the timeline of `test` wanted and what came instead, then what depends on the order of lines."""
    run = _Run(test, plan)
    for number, step in enumerate(test.timeline):
        if step.expects:
            found = run.alerts([run.until(number, step.at_s)])
            if not _is_as(step, found):
                yield f"at {step.at_s:g}s: {step.written}", f"at {step.at_s:g}s: {_shown(step, found)}"
    yield from run.differences()


class _Run:
    """What a plan makes of the lines of one timeline."""

    def __init__(self, test: RuleTest, plan: Plan) -> None:
        self._test, self._plan = test, plan
        self._scope = test.labels.get("cluster", "default")
        judged = [each for each in plan.correlations if each.rule.id == test.rule_id]
        # a silence is judged by peers, and the end of a log is none; everything else waits for time to come
        self._by_clock = not any(each.absence is not None for each in judged)

    def until(self, number: int, at_s: float) -> Items:
        """Return what the steps before `number` come to, when everything up to `at_s` has been read."""
        return self._items(self._test.timeline[:number], at_s)

    def alerts(self, batches: Iterable[Items]) -> list[Alert]:
        """Return the alerts of the tested rule after `batches`, by time; those that are pending do not count."""
        said = self._said(batches)
        return sorted(
            (alert for alerts in said.values() for alert in alerts if alert.status not in NOT_TOLD),
            key=lambda alert: (alert.starts_at, alert.key),
        )

    def differences(self) -> Iterator[Problem]:
        """Yield where the same lines in another order, or one of them late, end otherwise."""
        steps = [step for step in self._test.timeline if not step.expects]
        end = max((step.at_s for step in self._test.timeline), default=0.0)
        whole = self._items(steps, end)
        in_order = self.alerts([whole])
        if self.alerts([list(reversed(whole))]) != in_order:
            yield "the same end with the lines in reverse", "another end"
        for late in steps:
            rest = self._items([step for step in steps if step is not late], end)
            if self.alerts([rest, [item for item in whole if item not in rest]]) != in_order:
                yield f"the same end when this line comes last: {late.written}", "another end"

    def _said(self, batches: Iterable[Items]) -> Alerts:
        correlator = Correlator(self._plan, self._scope)
        said: dict[AlertKey, tuple[Alert, ...]] = {}
        for batch in batches:
            for item in batch:
                correlator.observe(item)
            for each in correlator.flush():
                if isinstance(each, Verdict) and each.key[1] == self._test.rule_id:
                    said[each.key] = each.over(said.get(each.key, ()))
        return said

    def _items(self, steps: Iterable[TimelineStep], at_s: float) -> Items:
        """Return what the lines of `steps` say, and that time has come to `at_s`."""
        lines = [line for step in steps if not step.expects for line in self._lines(step)]
        progress = [
            Progress(name, 1, 1, True, closed=self._by_clock) for name in dict.fromkeys(line.source_id for line in lines)
        ]
        found = match(decode(assemble(unwrap(lines, self._plan.formats), self._plan.formats), self._plan.formats), self._plan)
        heard = (each for each in found if isinstance(each, Match | ActivitySpan))
        reached = BEGIN + timedelta(seconds=at_s) + LATENESS
        clock = [ActivitySpan("clock", reached, reached, {"cluster": self._scope})] if self._by_clock else []
        return [*heard, *clock, *progress]

    def _lines(self, step: TimelineStep) -> Iterator[RawLine]:
        at = BEGIN + timedelta(seconds=step.at_s)
        number = self._test.timeline.index(step)
        for place, text in enumerate(_stamped(step.log, at).split("\n")):
            yield RawLine(step.source, number * 1000 + place, text.encode(), number + 1, at, self._test.labels)


def _stamped(log: str, at: datetime) -> str:
    stamp = at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03}"
    return log.replace("{time}", stamp, 1) if "{time}" in log else f"[{stamp}] {log}"


def _is_as(step: TimelineStep, found: Sequence[Alert]) -> bool:
    if step.expects == FIRES:
        return any(alert.ends_at is None and not _missing(step, alert) for alert in found)
    if step.expects == NOTHING:
        return not found
    return bool(found) and all(alert.ends_at is not None for alert in found)


def _missing(step: TimelineStep, alert: Alert) -> list[str]:
    facts = _facts(alert)
    return [name for name, value in step.facts.items() if value not in facts.get(name, ())]


def _facts(alert: Alert) -> Mapping[str, Sequence[str]]:
    """Return as text what an alert says: captures, labels, count and severity."""
    captures = {name: [_text(value) for value in (*each.values, each.max)] for name, each in alert.captures.items()}
    labels = {name: [value] for name, value in alert.labels.items()}
    return {**captures, **labels, "count": [str(alert.count)], "severity": [alert.severity]}


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _shown(step: TimelineStep, found: Sequence[Alert]) -> str:
    firing = [alert for alert in found if alert.ends_at is None]
    if not firing:
        return "over" if found else "nothing"
    nearest = min(firing, key=lambda alert: len(_missing(step, alert)))
    facts = _facts(nearest)
    named = step.facts or dict(nearest.key[2])
    return "fires {" + ", ".join(f"{name}: {', '.join(facts.get(name, ())[:3]) or '(missing)'}" for name in named) + "}"
