"""Write the reference pages of rules in Markdown: a page for each rule, and an index by component and by exception class.

Everything on a page comes from the rule: cause and fix are those of its first firing test, followed by those of other cases.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from engine.cli.authoring.showing import incident_of
from engine.cli.rulebook import with_layouts
from engine.dsl.document import ListNode, MapNode, Node, TextNode, texts
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import firing_logs
from engine.dsl.schema import CorrelationEntry
from engine.dsl.templates import outline
from engine.incident.render import human_ms
from engine.model.incidents import Incident, RenderedStep
from engine.model.rules import Rule
from engine.model.visible import visible

INDEX = "README.md"
_EXCEPTION = re.compile(r"\b[A-Z][A-Za-z0-9]*(?:Exception|Error)\b")
_NEAR_MISSES = 3


def pages(pack: Pack) -> Mapping[str, str]:
    """Return the text of every page by file name: `<rule>.md`, and the index first."""
    plan = with_layouts(pack.plan)
    rules = pack.plan.rules()
    page_by_name = {f"{id_}.md": _page(rule, pack, incident_of(id_, pack.tests, plan)) for id_, rule in sorted(rules.items())}
    return {INDEX: _index(pack), **page_by_name}


def _page(rule: Rule, pack: Pack, incident: Incident | None) -> str:
    draft = pack.drafts[rule.id]
    causes = [other.id for other in pack.plan.rules().values() for entry in other.explains if rule.id in entry.rules]
    symptoms = [id_ for entry in rule.explains for id_ in entry.rules]
    sections = (
        f"# {rule.id}\n\n{_prose(outline(draft.file.title))}\n\n{_facts(rule)}\n",
        _section("What it recognises", _detection(draft)),
        _section("Why it matters", _impact_text(draft, incident)),
        _section("What to do", _fix(incident.fix if incident else ())),
        _section("Case by case", _cases(draft)),
        _section("Afterwards", _code(incident.verify, "sh") if incident and incident.verify else ""),
        _section("An example", _example(draft)),
        _section("Near misses, on which it stays silent", _near_misses(draft)),
        _section("Related", _related(causes, symptoms, draft)),
        _section("References", "\n".join(f"- {address}" for address in rule.runbook.references)),
    )
    return "\n".join(section for section in sections if section)


def _facts(rule: Rule) -> str:
    rows = {
        "Severity": rule.severity,
        "Component": rule.component,
        "Versions": ", ".join(f"{operator} {version}" for operator, version in rule.versions) or "any",
        "Status": rule.status,
        "One alert for each": ", ".join(rule.entity),
    }
    return "\n".join(("| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())))


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body.rstrip()}\n" if body.strip() else ""


def _detection(draft: Draft) -> str:
    if draft.file.correlation is not None:
        return _correlation(draft.file.correlation)
    root = draft.document.root.get("detection")
    entries = root.entries if isinstance(root, MapNode) else ()
    items = [f"- `{name.value}`: {' or '.join(_item(value))}" for name, value in entries if name.value != "condition"]
    condition = next((value.value for name, value in entries if name.value == "condition" and isinstance(value, TextNode)), "")
    return "\n".join((*items, "", f"It fires when `{' '.join(condition.split())}`."))


def _correlation(correlation: CorrelationEntry) -> str:
    subjects = ", ".join(_link(id_) for id_ in (*correlation.rules, *correlation.open)) or f"`{correlation.of}`"
    continuation = f", then {', '.join(_link(id_) for id_ in correlation.expect)}" if correlation.expect else ""
    span = correlation.timespan or (human_ms(correlation.within * 1000) if correlation.within else "")
    keys = ", ".join(correlation.group_by)
    return f"`{correlation.type}` of {subjects}{continuation}, for each {keys}" + (f", within {span}." if span else ".")


def _item(node: Node) -> Iterator[str]:
    """Yield each alternative of an item in words."""
    match node:
        case TextNode(value=text):
            yield _inline(text)
        case ListNode(items=items):
            for item in items:
                yield from _item(item)
        case MapNode(entries=entries):
            yield " and ".join(f"{key.value.replace('|', ' ')} {' or '.join(_item(value))}" for key, value in entries)


def _impact_text(draft: Draft, incident: Incident | None) -> str:
    runbook = draft.file.runbook
    if incident is not None:
        return f"{_prose(incident.cause)}\n\n{_prose(incident.impact)}"
    if runbook is not None:
        return f"{_prose(runbook.cause)}\n\n{_prose(runbook.impact)}"
    return "It opens no incident by itself: other rules count it, or explain it."


def _cases(draft: Draft) -> str:
    """Return the causes and fix steps that have a condition `when`, as a list."""
    runbook = draft.file.runbook
    causes = [(case.when, case.cause) for case in runbook.cases] if runbook else []
    steps = [(step.when, step.do) for step in runbook.fix if step.when] if runbook else []
    return "\n".join(f"- {_inline(when)}: {_prose(outline(text))}" for when, text in (*causes, *steps))


def _fix(steps: Sequence[RenderedStep]) -> str:
    return "\n".join(_step(number, step) for number, step in enumerate(steps, 1))


def _step(number: int, step: RenderedStep) -> str:
    remarks = ", ".join(part for part in (step.where, "**changes state**" if step.changes_state else "") if part)
    files = "\n\n".join(f"# {name}\n{content}" for name, content in step.file.items())
    blocks = [_code("\n".join(step.assignments), "properties"), _code(files, ""), _code(step.run, "sh")]
    head = f"{number}. {_prose(step.do)}" + (f" ({remarks})" if remarks else "")
    return "\n\n".join((head, *(_indented(block) for block in blocks if block))) + "\n"


def _example(draft: Draft) -> str:
    logs = firing_logs(draft)
    return _code(logs[0], "text") if logs else ""


def _near_misses(draft: Draft) -> str:
    logs = [log for test in draft.tests if test.fires is None for log in test.logs.values()]
    return "\n\n".join(_code(log, "text") for log in logs[:_NEAR_MISSES])


def _related(causes: Iterable[str], symptoms: Iterable[str], draft: Draft) -> str:
    rows = {
        "May be a symptom of": sorted(set(causes)),
        "Explains": sorted(set(symptoms)),
        "Goes on from": [entry.rule for entry in draft.file.continues],
        "See also": draft.file.related,
    }
    return "\n".join(f"- {name}: {', '.join(_link(id_) for id_ in ids)}" for name, ids in rows.items() if ids)


def _index(pack: Pack) -> str:
    rules = sorted(pack.plan.rules().values(), key=lambda rule: (rule.component, rule.id))
    parts = [f"# Rules\n\n{len(rules)} rules. Written by `tocsin rules docs`.\n"]
    for component, group in groupby(rules, key=lambda rule: rule.component):
        rows = [
            f"| {_link(rule.id)} | {rule.severity} | {_prose(outline(pack.drafts[rule.id].file.title))} |" for rule in group
        ]
        parts.append("\n".join((f"## {component}\n", "| rule | severity | says |", "|---|---|---|", *rows, "")))
    return "\n".join((*parts, "## By exception\n", "| exception | rules |", "|---|---|", *_exceptions(pack), ""))


def _exceptions(pack: Pack) -> Iterator[str]:
    """Yield a table row for each exception class in a firing test or a detection, ordered by name."""
    rules_by_exception: dict[str, set[str]] = {}
    for draft in pack.drafts.values():
        detection_texts = (text.value for text in texts(draft.document.root.get("detection")))
        for name in _EXCEPTION.findall("\n".join((*firing_logs(draft), *detection_texts))):
            rules_by_exception.setdefault(name, set()).add(draft.id)
    for name, ids in sorted(rules_by_exception.items()):
        yield f"| `{name}` | {', '.join(_link(id_) for id_ in sorted(ids))} |"


def _link(id_: str) -> str:
    return f"[{id_}]({id_}.md)"


def _prose(text: str) -> str:
    """Return text of a rule or a log on one line, escaped so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", visible(" ".join(text.split())))


def _inline(text: str) -> str:
    shown = visible(" ".join(text.split()))
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence}{' ' if '`' in shown else ''}{shown}{' ' if '`' in shown else ''}{fence}"


def _code(text: str, language: str) -> str:
    """Return `text` as a fenced code block whose fence is longer than any in the text; empty for blank text."""
    if not text.strip():
        return ""
    lines = "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", lines)), default=0))
    return f"{fence}{language}\n{lines}\n{fence}"


def _indented(block: str) -> str:
    return "\n".join(f"   {line}" if line else line for line in block.split("\n"))
