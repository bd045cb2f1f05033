"""What `rules lint` advises beyond errors: untested rules, patterns too close to their sample, undeclared changes of state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.patterns import HOLE, MIN_LITERAL, compile_pattern
from engine.dsl.report import Report
from engine.model.diagnostics import Diagnostic

_NUMBER = re.compile(r"(?<![\w.-])(?:[0-9]{2,}|[0-9a-f]{8}-[0-9a-f-]{27})(?![\w-])")
# argument -> it changes something wherever it stands
CHANGING_ARGUMENTS = frozenset(
    (
        "--alter",
        "--delete",
        "--execute",
        "--create",
        "--reset-offsets",
        "--delete-records",
        "--remove",
        "-XPOST",
        "-XPUT",
        "-XDELETE",
    )
)
CHANGING_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
CHANGING_PROGRAMS = frozenset(("rm", "mv", "kill", "sysctl", "chown", "chmod", "kafka-delete-records.sh"))
CHANGING_VERBS = frozenset(("restart", "stop", "start", "delete", "apply", "patch", "scale", "kill", "rollout"))
SERVICE_PROGRAMS = frozenset(("systemctl", "docker", "docker-compose", "kubectl", "podman", "service"))


def advise(pack: Pack) -> list[Diagnostic]:
    """Return every finding of `pack`, warnings included, by file and place."""
    advice = [found for draft in pack.drafts.values() for found in _advise(draft)]
    return sorted(
        {*pack.diagnostics, *advice}, key=lambda found: (found.path, found.line, found.column, found.code, found.message)
    )


def changes_state(argv: Sequence[str]) -> str:
    """Return the argument of a command that alters something, empty when none is known to."""
    for index, argument in enumerate(argv):
        if argument in CHANGING_ARGUMENTS or (index == 0 and argument in CHANGING_PROGRAMS):
            return argument
        if argument in CHANGING_METHODS and index and argv[index - 1] in ("-X", "--request"):
            return argument
        if argument in CHANGING_VERBS and argv[0] in SERVICE_PROGRAMS:
            return argument
    return ""


def _advise(draft: Draft) -> Sequence[Diagnostic]:
    report = Report(draft.document)
    _want_tests(draft, report)
    logs = [log for test in draft.tests for log in test.logs.values()]
    for pattern in _patterns(draft.document.root.get("detection")):
        _want_holes(pattern, logs, report)
        _want_literal(pattern, report)
    steps = draft.file.runbook.fix if draft.file.runbook else []
    for index, step in enumerate(steps if draft.document.whole(["runbook", "fix"], steps) else []):
        changing = changes_state(step.run)
        if changing and not step.changes_state:
            at = draft.document.find(["runbook", "fix", index, "run"])
            help_line = "add `changes_state: true` to the step, so that readers are warned"
            report.add(Code.UNDECLARED_CHANGE, at, f"`{changing}` changes something", help_line)
    return report.all()


def _want_tests(draft: Draft, report: Report) -> None:
    at = draft.document.root.key("tests") or draft.document.root
    if not draft.document.whole(["tests"], draft.tests):
        return  # some were wrong, and that has been said
    if not any(test.shows_firing for test in draft.tests):
        report.add(Code.NO_FIRING_TEST, at, f"`{draft.id}` has no test that fires", "add a real log text with `fires: {...}`")
    if not any(test.shows_silence for test in draft.tests):
        help_line = "add the log text that is nearest to it without being it, with `silent: true`"
        report.add(Code.NO_SILENT_TEST, at, f"`{draft.id}` has no near miss", help_line)


def _patterns(node: Node | None) -> Iterator[TextNode]:
    """Yield the patterns over whole texts that a detection holds."""
    if isinstance(node, TextNode):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _patterns(item)
    elif isinstance(node, MapNode):
        for key, value in node.entries:
            field, bar, _ = key.value.partition("|")
            if key.value != "condition" and not bar and field not in ("level", "logger", "thread", "exception"):
                yield from _patterns(value)


def _want_holes(pattern: TextNode, logs: Sequence[str], report: Report) -> None:
    number = _NUMBER.search(pattern.value)
    if number is None or any(hole["name"] for hole in HOLE.finditer(pattern.value)):
        return
    if any(" ".join(pattern.value.split()) in " ".join(log.split()) for log in logs):
        message = f"the pattern has no hole, yet holds `{number[0]}` as its own sample does"
        help_line = "put a hole where the value differs from case to case, for example {size:bytes}"
        report.add(Code.PATTERN_IS_SAMPLE, pattern, message, help_line, number.start(), len(number[0]))


def _want_literal(pattern: TextNode, report: Report) -> None:
    if pattern.value.strip() and not compile_pattern(pattern.value).literals:
        message = f"the pattern has no fixed word of {MIN_LITERAL} characters"
        report.add(Code.NO_LITERAL, pattern, message, "add the words around it that never change")
