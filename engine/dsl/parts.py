"""The parts of a rule file that advice and pages need: its patterns, the steps of its fix, the logs of its tests."""

from __future__ import annotations

from collections.abc import Iterator

from engine.dsl.document import ListNode, Loc, MapNode, Node, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.schema import StepEntry

_SHORT_FIELDS = ("level", "logger", "thread", "exception")


def patterns(draft: Draft) -> Iterator[TextNode]:
    """Yield the patterns of the detection over `text`, `message` and labels, in file order."""
    return _patterns(draft.document.root.get("detection"))


def steps(draft: Draft) -> Iterator[tuple[Loc, StepEntry]]:
    """Yield (place, step) for each step of the fix, in order; nothing when a step could not be read."""
    entries = draft.file.runbook.fix if draft.file.runbook else []
    if draft.document.whole(["runbook", "fix"], entries):
        yield from ((("runbook", "fix", index), step) for index, step in enumerate(entries))


def firing_logs(draft: Draft) -> list[str]:
    """Return the log texts of the tests in which the rule fires, without those of timelines."""
    return [log for test in draft.tests if test.fires is not None for log in test.logs.values()]


def _patterns(node: Node | None) -> Iterator[TextNode]:
    if isinstance(node, TextNode):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _patterns(item)
    elif isinstance(node, MapNode):
        for key, value in node.entries:
            field, bar, _ = key.value.partition("|")
            if key.value != "condition" and not bar and field not in _SHORT_FIELDS:
                yield from _patterns(value)
