"""A command that changes something is declared as such, because readers run commands at night."""

from __future__ import annotations

from collections.abc import Sequence

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import steps
from engine.dsl.report import Report

# arguments that change something wherever they stand
CHANGING_ARGUMENTS = frozenset(
    (
        *("--alter", "--delete", "--execute", "--create", "--reset-offsets", "--delete-records", "--remove"),
        *("-XPOST", "-XPUT", "-XDELETE", "-XPATCH"),
    )
)
CHANGING_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
CHANGING_PROGRAMS = frozenset(
    (
        *("rm", "mv", "kill", "sysctl", "chown", "chmod", "truncate", "mkdir"),
        *("kafka-delete-records.sh", "kafka-leader-election.sh", "kafka-server-stop.sh", "kafka-server-start.sh"),
    )
)
CHANGING_VERBS = frozenset(
    (
        *("restart", "stop", "start", "delete", "apply", "patch", "scale", "kill", "rollout", "annotate", "label", "edit"),
        *("set", "cordon", "drain", "rm", "up", "down"),
    )
)
SERVICE_PROGRAMS = frozenset(("systemctl", "docker", "docker-compose", "kubectl", "podman", "service"))
READING_VERBS = frozenset(("get", "describe", "logs", "inspect", "ps", "status", "show", "top", "stats", "is-active"))


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each command of the fix that changes something without `changes_state: true`, and any such command in `verify`."""
    for loc, step in steps(draft):
        changing = changes_state(step.run)
        if changing and not step.changes_state:
            help_line = "add `changes_state: true` to the step, so that readers are warned"
            report.add(Code.UNDECLARED_CHANGE, draft.document.find([*loc, "run"]), f"`{changing}` changes something", help_line)
    changing = changes_state(draft.file.runbook.verify if draft.file.runbook else ())
    if changing:
        at = draft.document.find(["runbook", "verify"])
        report.add(
            Code.UNDECLARED_CHANGE, at, f"`{changing}` changes something", "`verify` only looks; make it a step of the fix"
        )


def changes_state(argv: Sequence[str]) -> str:
    """Return the argument by which a command changes something; empty when there is none."""
    for index, argument in enumerate(argv):
        if argument in CHANGING_ARGUMENTS or (index == 0 and argument in CHANGING_PROGRAMS):
            return argument
        if argument in CHANGING_METHODS and index and argv[index - 1] in ("-X", "--request"):
            return argument
    return _service_verb(argv) if argv and argv[0] in SERVICE_PROGRAMS else ""


def _service_verb(argv: Sequence[str]) -> str:
    """Return the verb by which a service program changes something; empty when a verb that only reads comes first."""
    verb = next((argument for argument in argv[1:] if argument in CHANGING_VERBS | READING_VERBS), "")
    return verb if verb in CHANGING_VERBS else ""
