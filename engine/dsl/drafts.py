"""First pass of the compiler over one file: its structure, detection and tests; nothing that needs another file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import re2
from msgspec import Struct, field

from engine.dsl.codes import Code
from engine.dsl.detection import Detection, captures_of, detection, pattern_test
from engine.dsl.document import ListNode, Loc, MapNode, Node, RuleDocument, TextNode, plain
from engine.dsl.patterns import checked_pattern, compiled_by_re2, report_refused
from engine.dsl.report import Report
from engine.dsl.rule_test import RuleTest
from engine.dsl.schema import ComponentFile, FormatFile, RuleFile, StatePhaseEntry, TestEntry
from engine.dsl.structure import check
from engine.dsl.terms import Terms, with_terms
from engine.dsl.timelines import timeline
from engine.model.expressions import Literal
from engine.model.rules import AnswerLines, Component, Format, Heartbeat, StatePhase, Test

NO_DETECTION = Detection((), Literal(False), {})


class Draft(Struct, frozen=True):
    """A rule after the first pass: its keys, its detection (empty for a correlation), its tests, and the file with places."""

    file: RuleFile
    document: RuleDocument
    report: Report
    detection: Detection = NO_DETECTION
    tests: tuple[RuleTest, ...] = field(default=())

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.file.id


def draft_rule(document: RuleDocument, report: Report, terms: Terms) -> Draft | None:
    """Return the draft of a rule file with its `terms` expanded; None when its keys cannot be read."""
    stem = PurePath(document.path).stem
    defaults: dict[str, Any] = {"id": stem, "title": stem, "severity": "info", "component": "any"}
    file = check(document, report, RuleFile, defaults)
    if file is None:
        return None
    _check_id(file.id, stem, document, report)
    _check_parts(file, document, report)
    node = document.root.get("detection")
    compiled = detection(with_terms(node, terms, report), report) if isinstance(node, MapNode) else NO_DETECTION
    return Draft(file, document, report, compiled, _tests(file, document, report))


def draft_component(document: RuleDocument, report: Report) -> Component | None:
    """Return the component of a file of rules/components; None when its keys cannot be read."""
    stem = PurePath(document.path).stem
    file = check(document, report, ComponentFile, {"name": stem, "label": stem, "names": ["?"]})
    if file is None:
        return None
    _check_id(file.name, stem, document, report, "name")
    return Component(
        file.name,
        file.label,
        _patterns(["names"], "member", document, report),
        _patterns(["version"], "version", document, report),
        _heartbeats(file, document, report),
        file.unless or "",
        tuple(file.loggers),
        _states(file, document, report),
        _answers(file, document, report),
    )


def draft_format(document: RuleDocument, report: Report) -> Format | None:
    """Return the format of a file of rules/formats; None when its keys or its header cannot be read."""
    stem = PurePath(document.path).stem
    file = check(document, report, FormatFile, {"name": stem})
    if file is None:
        return None
    _check_id(file.name, stem, document, report, "name")
    refusal, node = compiled_by_re2(file.header), document.find(["header"])
    if refusal and isinstance(node, TextNode):
        report_refused(node, refusal, report)
        return None
    header = re2.compile(file.header)
    for index, example in enumerate(file.examples):
        if not header.match(example.split("\n")[0]):
            message = "the header does not match this example"
            report.add(
                Code.EXAMPLE_FAILS, document.find(["examples", index]), message, "an example is one whole line of the log"
            )
    return Format(file.name, file.header, file.time, file.rank, file.labels, tuple(file.carries), file.level)


def _check_id(id_: str, stem: str, document: RuleDocument, report: Report, key: str = "id") -> None:
    if id_ != stem:
        message = f"the {key} is `{id_}` but the file is called `{stem}`"
        report.add(
            Code.ID_NOT_FILE_NAME, document.find([key]), message, f"rename the file to {id_}.yml, or the {key} to {stem}"
        )


def _check_parts(file: RuleFile, document: RuleDocument, report: Report) -> None:
    root = document.root
    if (root.get("detection") is None) == (root.get("correlation") is None):
        at = root.key("correlation") or root
        message = "a rule has a detection or a correlation, not both" if root.get("detection") else "the rule detects nothing"
        report.add(
            Code.DETECTION_OR_CORRELATION, at, message, "a detection looks at one event, a correlation at several over time"
        )
    if file.runbook is None and file.severity != "info" and root.get("runbook") is None:
        help_line = "every rule that can open an incident says cause, impact and fix; only severity info may go without"
        report.add(Code.MISSING_KEY, root, "`runbook` is missing", help_line)


def _tests(file: RuleFile, document: RuleDocument, report: Report) -> tuple[RuleTest, ...]:
    """Return the tests; a wrong one is reported and left out. Empty when the list has entries that could not be read."""
    if not document.whole(["tests"], file.tests):
        return ()
    tests = []
    for index, entry in enumerate(file.tests):
        node = document.find(["tests", index])
        _check_test(node, entry, report)
        logs = {**({"log": entry.log} if entry.log is not None else {}), **entry.logs}
        script = document.find(["tests", index, "timeline"])
        if entry.timeline is not None and isinstance(script, TextNode):
            steps = timeline(script, report)
            tests.append(RuleTest(file.id, document.path, script.mark.line, {}, entry.labels, None, timeline=steps))
        elif logs and (entry.fires is not None or entry.silent):
            expectations = (entry.fires, entry.cause, entry.fix, entry.count, entry.severity)
            tests.append(RuleTest(file.id, document.path, node.mark.line, logs, entry.labels, *expectations))
    return tuple(tests)


def _check_test(node: Node, entry: TestEntry, report: Report) -> None:
    if not isinstance(node, MapNode):
        return
    if node.get("timeline") is not None:
        _check_timeline(node, report)
        return
    outcomes = [key for key in ("fires", "silent") if node.get(key) is not None]
    is_false = entry.silent is False and node.get("silent") is not None and plain(node.get("silent") or node) == "false"
    if len(outcomes) != 1 or is_false or not (node.get("log") or node.get("logs")):
        help_line = "write `log: text` and either `fires: {capture: value}` or `silent: true`"
        report.add(Code.TEST_SHAPE, node, "this test lacks its input or its expected outcome", help_line)
    log = node.get("log")
    if isinstance(log, TextNode) and log.cut:
        report.add(Code.YAML_PLAIN, log, "YAML cuts this unquoted log at ` #`", "quote it, or put `|` before it")


def _check_timeline(node: MapNode, report: Report) -> None:
    others = [key for key, _ in node.entries if key.value not in ("timeline", "labels")]
    for key in others:
        report.add(
            Code.TEST_SHAPE, key, f"a test with `timeline` takes no `{key.value}`", "its steps give input and expectation"
        )


def _patterns(loc: Loc, hole: str, document: RuleDocument, report: Report) -> tuple[Test, ...]:
    """Return the patterns of the list at `loc`; each must have the hole `hole`, unless that is ""."""
    nodes = document.find(loc)
    items = nodes.items if isinstance(nodes, ListNode) else ()
    tests = [(item, _text_test(item, report)) for item in items if isinstance(item, TextNode)]
    for node, test in tests:
        if test and hole and hole not in captures_of((test,)):
            help_line = f"mark where it stands, for example {{{hole}:int}} or {{{hole}}}"
            report.add(Code.MISSING_HOLE, node, f"the pattern has no hole {{{hole}}}", help_line)
    return tuple(test for _, test in tests if test)


def _text_test(node: TextNode, report: Report) -> Test | None:
    pattern = checked_pattern(node, report)
    return pattern_test("text", pattern) if pattern else None


def _heartbeats(file: ComponentFile, document: RuleDocument, report: Report) -> tuple[Heartbeat, ...]:
    if not document.whole(["heartbeats"], file.heartbeats):
        return ()
    heartbeats = []
    for index, entry in enumerate(file.heartbeats):
        node = document.find(["heartbeats", index, "log"])
        test = _text_test(node, report) if isinstance(node, TextNode) else None
        if test is not None:
            heartbeats.append(Heartbeat(test, entry.every, entry.versions))
    return tuple(heartbeats)


def _states(file: ComponentFile, document: RuleDocument, report: Report) -> Mapping[str, tuple[StatePhase, ...]]:
    return {state: _phases(state, entries, document, report) for state, entries in file.states.items()}


def _answers(file: ComponentFile, document: RuleDocument, report: Report) -> Mapping[str, AnswerLines]:
    return {
        kind: AnswerLines(
            tuple(entry.by),
            _patterns(["answers", kind, "lines"], "", document, report),
            _patterns(["answers", kind, "gone"], "", document, report),
        )
        for kind, entry in file.answers.items()
    }


def _phases(state: str, entries: Sequence[StatePhaseEntry], document: RuleDocument, report: Report) -> tuple[StatePhase, ...]:
    at: list[str | int] = ["states", state]
    if not document.whole(at, entries):
        return ()
    return tuple(
        StatePhase(
            _patterns([*at, number, "begins"], "", document, report),
            _patterns([*at, number, "ends"], "", document, report),
            entry.at_most,
        )
        for number, entry in enumerate(entries)
    )
