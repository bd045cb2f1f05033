"""Run the tests of rules: send their logs through the pipeline and compare the result with what the tests expect.

A rule is tested with the rules that it counts, waits for or explains, but without rules that would explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import ndiff
from functools import lru_cache, partial
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from engine.cli.timeline_tests import timeline_lines, timeline_problems
from engine.dsl.rule_test import RuleTest
from engine.identity_cache import cached_by_identity
from engine.incident import MemoryLedger
from engine.match import match
from engine.model.incidents import Alert, Capture, Incident
from engine.model.matches import Match, Value
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import Correlation, Plan, Rule, Signature, Template
from engine.model.visible import visible
from engine.parse import assemble, decode, unwrap
from engine.pipeline import replay

INGESTED_AT = datetime(2100, 1, 1, tzinfo=UTC)  # later than any stamp in a test: stamps of the future are misdated


class Outcome(Struct, frozen=True):
    """The outcome of a test: `problems` are pairs of the expected and the actual result; none when the test passed."""

    test: RuleTest
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The rule with the file and line of the test."""
        return f"{self.test.rule_id} ({PurePath(self.test.path).name}:{self.test.line})"


class _TestResult(Struct, frozen=True):
    """The result of a test for the tested rule: its matches, its alerts that are neither pending nor retracted, and its
    incidents in their final state."""

    matches: tuple[Match, ...]
    alerts: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()


def run_test(test: RuleTest, plan: Plan) -> Outcome:
    """Return the outcome of `test` with the rules of `plan`."""
    narrowed_plan = narrow_plan(plan, test.rule_id)
    if test.timeline:
        return Outcome(test, tuple(timeline_problems(test, narrowed_plan)))
    is_correlation = any(correlation.rule.id == test.rule_id for correlation in narrowed_plan.correlations)
    by_alert = is_correlation or bool(narrowed_plan.rules()[test.rule_id].not_during)  # whether not every match fires
    needs_alert = by_alert or any(expected is not None for expected in (test.cause, test.fix, test.count, test.severity))
    result = _replay(test, narrowed_plan) if needs_alert else _match_only(test, narrowed_plan)
    facts = [_alert_facts(alert) for alert in result.alerts] if by_alert else [_match_facts(m) for m in result.matches]
    problems = [*_fact_problems(test, facts), *_alert_problems(test, result)]
    return Outcome(test, tuple(problems))


def incidents(test: RuleTest, plan: Plan) -> tuple[Incident, ...]:
    """Return the incidents of the tested rule in their final state."""
    return _replay(test, narrow_plan(plan, test.rule_id)).incidents


def shown_cases(tests: Iterable[RuleTest], plan: Plan, rule_id: str) -> frozenset[int]:
    """Return the positions of the cases of `rule_id` that the incidents of `tests` have."""
    narrowed = _with_numbered_cases(narrow_plan(plan, rule_id), rule_id)
    cases = set(range(len(narrowed.rules()[rule_id].runbook.cases)))
    shown = set[int]()
    for test in sorted(tests, key=lambda test: test.cause is None):  # those that name a cause show most cases
        if shown == cases:
            break
        causes = {incident.cause.partition(" ")[0] for incident in _replay(test, narrowed).incidents}
        shown |= {int(cause) for cause in causes if cause.isdecimal()}
    return frozenset(shown)


def _with_numbered_cases(plan: Plan, rule_id: str) -> Plan:
    """Return `plan` with a rule whose cases have their positions as causes, so that an incident shows which one it has."""

    def numbered(rule: Rule) -> Rule:
        if rule.id != rule_id:
            return rule
        cases = tuple(replace(case, cause=Template((str(index),))) for index, case in enumerate(rule.runbook.cases))
        return replace(rule, runbook=replace(rule.runbook, cause=Template(("-",)), cases=cases))

    return replace(
        plan,
        signatures=tuple(replace(s, rule=numbered(s.rule)) for s in plan.signatures),
        correlations=tuple(replace(c, rule=numbered(c.rule)) for c in plan.correlations),
    )


def difference(expected: str, actual: str) -> str:
    """Return a line diff: lines of `expected` begin with `-`, lines of `actual` with `+`, common lines with neither."""
    lines = ndiff(expected.split("\n"), actual.split("\n"))
    return "\n".join(f"  {line[:2]}{visible(line[2:])}" for line in lines if not line.startswith("?"))


def narrow_plan(plan: Plan, rule_id: str) -> Plan:
    """Return `plan` with only `rule_id` and the rules that it uses or explains, of which only `rule_id` explains others.

    All tests of a rule get the same object, so that it is compiled once.
    """
    return _narrow_once(plan)(rule_id)


@cached_by_identity
def _narrow_once(plan: Plan) -> Callable[[str], Plan]:
    return lru_cache(maxsize=1)(partial(_narrow, plan))


def _narrow(plan: Plan, rule_id: str) -> Plan:
    rules: tuple[Signature | Correlation, ...] = (*plan.signatures, *plan.correlations)
    rules_by_id = {rule.rule.id: rule for rule in rules}
    selected: set[str] = set()
    pending = [rule_id, *(other for entry in rules_by_id[rule_id].rule.explains for other in entry.rules)]
    while pending:
        id_ = pending.pop()
        if id_ in rules_by_id and id_ not in selected:
            selected.add(id_)
            pending.extend(_used_rules(rules_by_id[id_]))
    return replace(
        plan,
        signatures=tuple(replace(s, rule=_without_causes(s.rule, rule_id)) for s in plan.signatures if s.rule.id in selected),
        correlations=tuple(
            replace(c, rule=_without_causes(c.rule, rule_id)) for c in plan.correlations if c.rule.id in selected
        ),
    )


def _used_rules(rule: Signature | Correlation) -> Iterator[str]:
    yield from rule.rule.clear.signs
    yield from (alias.rule for alias in rule.rule.told_as)
    if isinstance(rule, Signature):
        return
    yield from (*rule.rules, *rule.expect)
    if rule.absence is None:
        return
    yield rule.absence.of
    if rule.absence.sooner:
        yield from (*rule.absence.sooner.rules, *rule.absence.sooner.back)
    if rule.absence.stop:
        yield from rule.absence.stop.rules


def _without_causes(rule: Rule, tested: str) -> Rule:
    return replace(rule, continues=(), explains=rule.explains if rule.id == tested else ())


def lines_of(test: RuleTest) -> Iterator[RawLine | Progress]:
    """Yield the lines of every log of the test, one source after the other, each followed by its final progress; of a timeline
    the lines of its steps."""
    if test.timeline:
        yield from timeline_lines(test)
    for name, text in test.logs.items():
        offset = 0
        for number, line in enumerate(text.encode().splitlines(), 1):
            yield RawLine(name, offset, line, number, INGESTED_AT, test.labels)
            offset += len(line) + 1
        yield Progress(name, offset, offset, caught_up=True)


def events(test: RuleTest, plan: Plan) -> Iterator[LogEvent]:
    """Yield the events in the logs of `test`, decoded by the formats of `plan`."""
    read = decode(assemble(unwrap(lines_of(test), plan.formats), plan.formats), plan.formats)
    return (event for event in read if isinstance(event, LogEvent))


def _match_only(test: RuleTest, plan: Plan) -> _TestResult:
    matches = match(events(test, plan), plan)
    return _TestResult(tuple(item for item in matches if isinstance(item, Match) and item.rule_id == test.rule_id))


def _replay(test: RuleTest, plan: Plan) -> _TestResult:
    ledger, matches, final = MemoryLedger(), list[Match](), dict[str, Incident]()

    def observe(_: LogEvent, event_matches: list[Match]) -> None:
        matches.extend(match for match in event_matches if match.rule_id == test.rule_id)

    for incident in replay(lines_of(test), plan, ledger, observe):
        final[incident.id] = incident
    scope = test.labels.get("cluster", "default")
    alerts = [alert for key, alerts in ledger.alerts(scope).items() if key[1] == test.rule_id for alert in alerts]
    active = tuple(alert for alert in alerts if alert.status not in ("pending", "retracted"))
    incidents = tuple(incident for incident in final.values() if incident.key[1] == test.rule_id)
    return _TestResult(tuple(matches), active, incidents)


def _match_facts(match: Match) -> Mapping[str, Sequence[Value]]:
    return {name: (value,) for name, value in {**match.labels, **match.captures}.items()}


def _alert_facts(alert: Alert) -> Mapping[str, Sequence[Value]]:
    labels = {name: (value,) for name, value in alert.labels.items()}
    return {**{name: _values(capture) for name, capture in alert.captures.items()}, **labels}


def _values(capture: Capture) -> Sequence[Value]:
    return (*capture.values, *(() if capture.max is None else (capture.max,)))


def _fact_problems(test: RuleTest, facts: Sequence[Mapping[str, Sequence[Value]]]) -> Iterator[tuple[str, str]]:
    """Yield the mismatch of `fires` or `silent`, if any; of several matches the one nearest to the expected facts is shown."""
    if test.fires is None:
        if facts:
            yield "silent", f"fires {_facts_text(facts[0])}"
        return
    if not facts:
        yield f"fires {_expected_text(test.fires)}", "silent"
        return
    nearest = min(facts, key=lambda facts_of_one: len(_missing(test.fires or {}, facts_of_one)))
    missing = _missing(test.fires, nearest)
    if missing:
        yield f"fires {_expected_text(missing)}", f"fires {_facts_text({name: nearest.get(name, ()) for name in missing})}"


def _alert_problems(test: RuleTest, result: _TestResult) -> Iterator[tuple[str, str]]:
    counts = [str(alert.count) for alert in result.alerts]
    if test.count is not None and str(test.count) not in counts:
        yield f"count {test.count}", f"count {', '.join(counts) or 'of nothing: no alert'}"
    severities = [alert.severity for alert in result.alerts]
    if test.severity is not None and test.severity not in severities:
        yield f"severity {test.severity}", f"severity {', '.join(severities) or 'of nothing: no alert'}"
    causes = [f"{incident.title}: {incident.cause}" for incident in result.incidents]
    fixes = [_fix_text(incident) for incident in result.incidents]
    for part, expected, texts in (("cause", test.cause, causes), ("fix", test.fix, fixes)):
        if expected is not None and not any(expected in text for text in texts):
            yield f"a {part} with: {expected}", f"the {part}: {' / '.join(texts) or 'none: no incident'}"


def _fix_text(incident: Incident) -> str:
    """Return the text of the rendered fix, one line a step."""
    lines = []
    for step in incident.fix:
        settings = {**step.set, **step.also, **step.file}
        lines.append(" ".join([step.do, *(f"{name}={value}" for name, value in settings.items()), step.run]).strip())
    return "\n".join(lines)


def _missing(expected: Mapping[str, str], facts: Mapping[str, Sequence[Value]]) -> Mapping[str, str]:
    return {name: value for name, value in expected.items() if not any(_equal(value, actual) for actual in facts.get(name, ()))}


def _equal(expected: str, actual: Value) -> bool:
    """Return whether two values are equal as texts or, when `actual` is a number, as numbers: 2 equals 2.0."""
    if expected == str(actual):
        return True
    try:
        return not isinstance(actual, str) and float(expected) == float(actual)
    except ValueError:
        return False


def _expected_text(values: Mapping[str, str]) -> str:
    return _facts_text({name: (value,) for name, value in values.items()})


def _facts_text(facts: Mapping[str, Sequence[Value]]) -> str:
    pairs = (f"{name}: {', '.join(str(v) for v in values) or '(missing)'}" for name, values in facts.items())
    return "{" + ", ".join(pairs) + "}"
