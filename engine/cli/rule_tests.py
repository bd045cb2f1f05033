"""Run the tests that rules carry: their log text through the pipeline, what comes out against what they say.

A rule is tested alone: with what it counts, waits for or explains, but without rules that would explain it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import ndiff
from functools import lru_cache, partial
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from engine.cli.timeline_tests import timeline_problems
from engine.dsl.rule_test import RuleTest
from engine.identity_cache import remembered
from engine.incident import MemoryLedger
from engine.match import match
from engine.model.incidents import Alert, Capture, Incident
from engine.model.matches import Match, Value
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import Correlation, Plan, Rule, Signature
from engine.model.visible import visible
from engine.parse import assemble, decode, unwrap
from engine.pipeline import replay

INGESTED_AT = datetime(2100, 1, 1, tzinfo=UTC)  # of lines without a stamp; after any stamp, for none may be from the future


class Outcome(Struct, frozen=True):
    """One test and what was wrong with its result: pairs of what was expected and what came; none: it passed."""

    test: RuleTest
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Rule, file and line, for a list of results."""
        return f"{self.test.rule_id} ({PurePath(self.test.path).name}:{self.test.line})"


class _TestResult(Struct, frozen=True):
    """What came out: the rule's matches, its alerts that are no longer pending, its incidents in their final state."""

    matches: tuple[Match, ...]
    alerts: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()


def run_test(test: RuleTest, plan: Plan) -> Outcome:
    """Return the outcome of `test` with the rules of `plan`."""
    alone = narrowed(plan, test.rule_id)
    if test.timeline:
        return Outcome(test, tuple(timeline_problems(test, alone)))
    is_correlation = any(each.rule.id == test.rule_id for each in alone.correlations)
    asks_for_alert = is_correlation or any(wanted is not None for wanted in (test.cause, test.fix, test.count, test.severity))
    seen = _replayed(test, alone) if asks_for_alert else _matched(test, alone)
    facts = [_facts_of_alert(alert) for alert in seen.alerts] if is_correlation else [_facts_of_match(m) for m in seen.matches]
    problems = [*_wrong_facts(test, facts), *_wrong_alert(test, seen)]
    return Outcome(test, tuple(problems))


def incidents(test: RuleTest, plan: Plan) -> tuple[Incident, ...]:
    """Return the incidents of the tested rule that its log ends in, in their final state."""
    return _replayed(test, narrowed(plan, test.rule_id)).incidents


def difference(wanted: str, got: str) -> str:
    """Return what was wanted and what came as lines that begin with `-` and `+`, those of both with neither."""
    lines = ndiff(wanted.split("\n"), got.split("\n"))
    return "\n".join(f"  {line[:2]}{visible(line[2:])}" for line in lines if not line.startswith("?"))


def narrowed(plan: Plan, rule_id: str) -> Plan:
    """Return `plan` with `rule_id` and the rules that it works with or explains; only it explains anything.

    The same for the tests of one rule, so that what is compiled for the first serves them all.
    """
    return _narrowings(plan)(rule_id)


@remembered
def _narrowings(plan: Plan) -> Callable[[str], Plan]:
    return lru_cache(maxsize=1)(partial(_narrowed, plan))


def _narrowed(plan: Plan, rule_id: str) -> Plan:
    both: tuple[Signature | Correlation, ...] = (*plan.signatures, *plan.correlations)
    every = {each.rule.id: each for each in both}
    wanted: set[str] = set()
    waiting = [rule_id, *(other for entry in every[rule_id].rule.explains for other in entry.rules)]
    while waiting:
        id_ = waiting.pop()
        if id_ in every and id_ not in wanted:
            wanted.add(id_)
            waiting.extend(_works_with(every[id_]))
    return replace(
        plan,
        signatures=tuple(replace(s, rule=_alone(s.rule, rule_id)) for s in plan.signatures if s.rule.id in wanted),
        correlations=tuple(replace(c, rule=_alone(c.rule, rule_id)) for c in plan.correlations if c.rule.id in wanted),
    )


def _works_with(rule: Signature | Correlation) -> Iterator[str]:
    yield from rule.rule.clear.rules
    yield from (told.rule for told in rule.rule.told_as)
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


def _alone(rule: Rule, tested: str) -> Rule:
    return replace(rule, continues=(), explains=rule.explains if rule.id == tested else ())


def _input(test: RuleTest) -> Iterator[RawLine | Progress]:
    """Yield the lines of every log of the test, one source after the other, and that all was read."""
    for name, text in test.logs.items():
        offset = 0
        for number, line in enumerate(text.encode().splitlines(), 1):
            yield RawLine(name, offset, line, number, INGESTED_AT, test.labels)
            offset += len(line) + 1
        yield Progress(name, offset, offset, caught_up=True)


def events(test: RuleTest, plan: Plan) -> Iterator[LogEvent]:
    """Yield the events in the logs of `test`, as the formats of `plan` read them."""
    read = decode(assemble(unwrap(_input(test), plan.formats), plan.formats), plan.formats)
    return (event for event in read if isinstance(event, LogEvent))


def _matched(test: RuleTest, plan: Plan) -> _TestResult:
    found = match(events(test, plan), plan)
    return _TestResult(tuple(each for each in found if isinstance(each, Match) and each.rule_id == test.rule_id))


def _replayed(test: RuleTest, plan: Plan) -> _TestResult:
    ledger, matches, final = MemoryLedger(), list[Match](), dict[str, Incident]()

    def observe(_: LogEvent, found: list[Match]) -> None:
        matches.extend(each for each in found if each.rule_id == test.rule_id)

    for incident in replay(_input(test), plan, ledger, observe):
        final[incident.id] = incident
    scope = test.labels.get("cluster", "default")
    alerts = [alert for key, alerts in ledger.alerts(scope).items() if key[1] == test.rule_id for alert in alerts]
    told = tuple(alert for alert in alerts if alert.status not in ("pending", "retracted"))
    return _TestResult(tuple(matches), told, tuple(each for each in final.values() if each.key[1] == test.rule_id))


def _facts_of_match(found: Match) -> Mapping[str, Sequence[Value]]:
    return {name: (value,) for name, value in {**found.labels, **found.captures}.items()}


def _facts_of_alert(alert: Alert) -> Mapping[str, Sequence[Value]]:
    labels = {name: (value,) for name, value in alert.labels.items()}
    return {**{name: _values(capture) for name, capture in alert.captures.items()}, **labels}


def _values(capture: Capture) -> Sequence[Value]:
    return (*capture.values, *(() if capture.max is None else (capture.max,)))


def _wrong_facts(test: RuleTest, facts: Sequence[Mapping[str, Sequence[Value]]]) -> Iterator[tuple[str, str]]:
    """Yield the mismatch of `fires` or `silent`; of several matches the nearest to what is expected is shown."""
    if test.fires is None:
        if facts:
            yield "silent", f"fires {_shown(facts[0])}"
        return
    if not facts:
        yield f"fires {_wanted(test.fires)}", "silent"
        return
    nearest = min(facts, key=lambda each: len(_missing(test.fires or {}, each)))
    missing = _missing(test.fires, nearest)
    if missing:
        yield f"fires {_wanted(missing)}", f"fires {_shown({name: nearest.get(name, ()) for name in missing})}"


def _wrong_alert(test: RuleTest, seen: _TestResult) -> Iterator[tuple[str, str]]:
    counts = [str(alert.count) for alert in seen.alerts]
    if test.count is not None and str(test.count) not in counts:
        yield f"count {test.count}", f"count {', '.join(counts) or 'of nothing: no alert'}"
    severities = [alert.severity for alert in seen.alerts]
    if test.severity is not None and test.severity not in severities:
        yield f"severity {test.severity}", f"severity {', '.join(severities) or 'of nothing: no alert'}"
    causes = [f"{incident.title}: {incident.cause}" for incident in seen.incidents]
    fixes = [_fix_text(incident) for incident in seen.incidents]
    for what, wanted, texts in (("cause", test.cause, causes), ("fix", test.fix, fixes)):
        if wanted is not None and not any(wanted in text for text in texts):
            yield f"a {what} with: {wanted}", f"the {what}: {' / '.join(texts) or 'none: no incident'}"


def _fix_text(incident: Incident) -> str:
    """Return everything that the rendered fix says, one line a step."""
    lines = []
    for step in incident.fix:
        settings = {**step.set, **step.also, **step.file}
        lines.append(" ".join([step.do, *(f"{name}={value}" for name, value in settings.items()), step.run]).strip())
    return "\n".join(lines)


def _missing(wanted: Mapping[str, str], facts: Mapping[str, Sequence[Value]]) -> Mapping[str, str]:
    return {name: value for name, value in wanted.items() if not any(_equal(value, got) for got in facts.get(name, ()))}


def _equal(wanted: str, got: Value) -> bool:
    """Compare as text, and as numbers where what came is one: 2 is 2.0."""
    if wanted == str(got):
        return True
    try:
        return not isinstance(got, str) and float(wanted) == float(got)
    except ValueError:
        return False


def _wanted(values: Mapping[str, str]) -> str:
    return _shown({name: (value,) for name, value in values.items()})


def _shown(facts: Mapping[str, Sequence[Value]]) -> str:
    pairs = (f"{name}: {', '.join(str(v) for v in values) or '(missing)'}" for name, values in facts.items())
    return "{" + ", ".join(pairs) + "}"
