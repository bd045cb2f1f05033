"""Run the timelines of rules: compare the alerts at each step, and repeat the run with lines late or in another order."""

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
INACTIVE = ("pending", "retracted")
_ASKED = "{asked}"  # the stamp of a source that asks

Problem = tuple[str, str]
Items = Sequence[Match | ActivitySpan | Progress]
Alerts = Mapping[AlertKey, tuple[Alert, ...]]


def timeline_problems(test: RuleTest, plan: Plan) -> Iterator[Problem]:
    """Yield the expected and the actual result of each step of the timeline of `test` that failed, then the results that depend
    on the order of lines."""
    run = _TimelineRun(test, plan)
    for number, step in enumerate(test.timeline):
        if step.expects:
            alerts = run.alerts([run.until(number, step.at_s)])
            if not _meets(step, alerts):
                yield f"at {step.at_s:g}s: {step.written}", f"at {step.at_s:g}s: {_alerts_text(step, alerts)}"
    yield from run.differences()


class _TimelineRun:
    """The correlation of the lines of one timeline."""

    def __init__(self, test: RuleTest, plan: Plan) -> None:
        self._test, self._plan = test, plan
        self._scope = test.labels.get("cluster", "default")
        correlations = [correlation for correlation in plan.correlations if correlation.rule.id == test.rule_id]
        # a silence is judged by the activity of peers, which a clock would hide; everything else waits for the watermark
        self._by_clock = not any(correlation.absence is not None for correlation in correlations)

    def until(self, number: int, at_s: float) -> Items:
        """Return the items of the steps before `number`, with the watermark at `at_s`."""
        return self._items(self._test.timeline[:number], at_s)

    def alerts(self, batches: Iterable[Items]) -> list[Alert]:
        """Return the alerts of the tested rule after `batches`, ordered by time, without pending and retracted ones."""
        alerts_by_key = self._correlate(batches)
        return sorted(
            (alert for alerts in alerts_by_key.values() for alert in alerts if alert.status not in INACTIVE),
            key=lambda alert: (alert.starts_at, alert.key),
        )

    def differences(self) -> Iterator[Problem]:
        """Yield a problem when the lines in reverse order, or with one of them last, end in other alerts."""
        steps = [step for step in self._test.timeline if not step.expects]
        end = max((step.at_s for step in self._test.timeline), default=0.0)
        all_items = self._items(steps, end)
        in_order = self.alerts([all_items])
        if self.alerts([list(reversed(all_items))]) != in_order:
            yield "the same end with the lines in reverse", "another end"
        for late_step in steps:
            other_items = self._items([step for step in steps if step is not late_step], end)
            if self.alerts([other_items, [item for item in all_items if item not in other_items]]) != in_order:
                yield f"the same end when this line comes last: {late_step.written}", "another end"

    def _correlate(self, batches: Iterable[Items]) -> Alerts:
        correlator = Correlator(self._plan, self._scope)
        alerts_by_key: dict[AlertKey, tuple[Alert, ...]] = {}
        for batch in batches:
            for item in batch:
                correlator.observe(item)
            for finding in correlator.flush():
                if isinstance(finding, Verdict) and finding.key[1] == self._test.rule_id:
                    alerts_by_key[finding.key] = finding.over(alerts_by_key.get(finding.key, ()))
        return alerts_by_key

    def _items(self, steps: Iterable[TimelineStep], at_s: float) -> Items:
        """Return the matches and spans of the lines of `steps`, followed by spans or progress that move the watermark to
        `at_s`."""
        lines = [line for step in steps if not step.expects for line in _lines(self._test, step)]
        progress = [
            Progress(name, 1, 1, True, closed=self._by_clock) for name in dict.fromkeys(line.source_id for line in lines)
        ]
        items = match(decode(assemble(unwrap(lines, self._plan.formats), self._plan.formats), self._plan.formats), self._plan)
        observed = (item for item in items if isinstance(item, Match | ActivitySpan))
        reached_at = BEGIN + timedelta(seconds=at_s) + LATENESS
        clock = [ActivitySpan("clock", reached_at, reached_at, {"cluster": self._scope})] if self._by_clock else []
        return [*observed, *clock, *progress]


def timeline_lines(test: RuleTest) -> Iterator[RawLine]:
    """Yield the lines of all steps of a timeline, in order of the steps."""
    for step in test.timeline:
        if not step.expects:
            yield from _lines(test, step)


def _lines(test: RuleTest, step: TimelineStep) -> Iterator[RawLine]:
    at = BEGIN + timedelta(seconds=step.at_s)
    number = test.timeline.index(step)
    for position, text in enumerate(_stamped(step.log, at).split("\n")):
        yield RawLine(step.source, number * 1000 + position, text.encode(), number + 1, at, test.labels)


def _stamped(log: str, at: datetime) -> str:
    if _ASKED in log:
        return log.replace(_ASKED, f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z", 1)
    stamp = at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03}"
    return log.replace("{time}", stamp, 1) if "{time}" in log else f"[{stamp}] {log}"


def _meets(step: TimelineStep, alerts: Sequence[Alert]) -> bool:
    if step.expects == FIRES:
        return any(alert.ends_at is None and not _missing(step, alert) for alert in alerts)
    if step.expects == NOTHING:
        return not alerts
    return bool(alerts) and all(alert.ends_at is not None for alert in alerts)


def _missing(step: TimelineStep, alert: Alert) -> list[str]:
    facts = _facts(alert)
    return [name for name, value in step.facts.items() if value not in facts.get(name, ())]


def _facts(alert: Alert) -> Mapping[str, Sequence[str]]:
    """Return the facts of an alert by name, as texts: captures, labels, count and severity."""
    captures = {name: [_text(value) for value in (*capture.values, capture.max)] for name, capture in alert.captures.items()}
    labels = {name: [value] for name, value in alert.labels.items()}
    return {**captures, **labels, "count": [str(alert.count)], "severity": [alert.severity]}


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _alerts_text(step: TimelineStep, alerts: Sequence[Alert]) -> str:
    firing = [alert for alert in alerts if alert.ends_at is None]
    if not firing:
        return "over" if alerts else "nothing"
    nearest = min(firing, key=lambda alert: len(_missing(step, alert)))
    facts = _facts(nearest)
    names = step.facts or dict(nearest.key[2])
    return "fires {" + ", ".join(f"{name}: {', '.join(facts.get(name, ())[:3]) or '(missing)'}" for name in names) + "}"
