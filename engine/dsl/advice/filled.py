"""Every value of a fix has a source: a capture, the entity, a label that a format sets, or a context value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.symbols import SymbolTable, given_labels
from engine.dsl.templates import CONTEXT
from engine.identity_cache import cached_by_identity
from engine.model.expressions import names
from engine.model.rules import Hole, Step, Template

_EVERYWHERE = frozenset(("cluster", "source", "container", "connector", "task", "worker"))  # of wrappers and status documents


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each hole of a command or a setting whose name is a label that nothing in this pack sets."""
    rule = pack.plan.rules().get(draft.id)
    if rule is None or not pack.plan.formats:
        return  # the labels are unknown without formats
    filled = _filled(draft, pack)
    for loc, template in _texts(rule.runbook.fix, rule.runbook.verify):
        node = draft.document.find(loc)
        if not isinstance(node, TextNode):
            continue
        for hole, name in _names(template):
            if name not in filled:
                message = f"no capture fills `{name}`; it is a label that only a configuration sets"
                at = node.value.find(hole.source)
                report.add(Code.NEVER_FILLED, node, message, "capture it in the detection", at, len(hole.source))


def _names(template: Template) -> Iterator[tuple[Hole, str]]:
    """Yield (hole, name) for each name that a hole needs, without suffixes such as `.max`."""
    for hole in (part for part in template.parts if isinstance(part, Hole)):
        yield from ((hole, name) for name in sorted({name.partition(".")[0] for name in names(hole.expression)}))


def _filled(draft: Draft, pack: Pack) -> frozenset[str]:
    return frozenset((*CONTEXT, *_symbols(pack).visible(draft.id)))


@cached_by_identity
def _symbols(pack: Pack) -> SymbolTable:
    components = {component.name: component for component in pack.plan.components}
    labels = given_labels(components.values(), pack.plan.formats) | _EVERYWHERE
    return SymbolTable(pack.drafts, components, pack.plan.formats, labels)


def _texts(steps: Sequence[Step], verify: Sequence[Template]) -> Iterator[tuple[Loc, Template]]:
    """Yield (place, template) of every template that is pasted into a shell or a file."""
    yield from ((("runbook", "verify", index), text) for index, text in enumerate(verify))
    for number, step in enumerate(steps):
        base = ("runbook", "fix", number)
        yield from (((*base, "run", index), text) for index, text in enumerate(step.run))
        for key, texts in (("set", step.set), ("also", step.also), ("file", step.file)):
            yield from (((*base, key, name), text) for name, text in texts.items())
