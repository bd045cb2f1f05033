"""Compile a whole pack of files: rules, components and formats, their tests, and every finding about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.dsl.build import correlation, plan_order, signature
from engine.dsl.codes import Code
from engine.dsl.document import START, MapNode, Node, RuleDocument, SourceMark
from engine.dsl.drafts import Draft, draft_component, draft_format, draft_rule
from engine.dsl.files import TERMS, RuleSource, collect, fingerprint
from engine.dsl.links import check_links
from engine.dsl.reader import read
from engine.dsl.report import Report, did_you_mean
from engine.dsl.rule_test import Tests
from engine.dsl.terms import Terms, terms_of
from engine.dsl.world import outlines_of, world
from engine.model.diagnostics import Diagnostic, Level
from engine.model.rules import Component, Format, Plan

T = TypeVar("T")
_Made = Draft | Component | Format | Terms

_NO_RULES = Plan((), (), (), ())
REMEMBERED = 1000  # files: some more than the built-in rules have


class Pack(Struct, frozen=True):
    """Everything that was read: the plan of what could be compiled, the tests by rule id, every finding by file and place,
    and the drafts by rule id, for closer looks at the files. With errors in `diagnostics` the plan is not to be run."""

    plan: Plan
    tests: Tests
    diagnostics: tuple[Diagnostic, ...]
    drafts: Mapping[str, Draft] = field(default_factory=dict)

    def errors(self) -> tuple[Diagnostic, ...]:
        """Return the findings that stop loading."""
        return tuple(found for found in self.diagnostics if found.level is Level.ERROR)


class _FileReading(Struct):
    """What the first pass over the files has found so far."""

    drafts: dict[str, Draft] = field(default_factory=dict)
    components: dict[str, Component] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    terms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    giving_way: list[tuple[Component, RuleDocument, Report]] = field(default_factory=list)  # components with `unless`


def load_pack(paths: Sequence[Path]) -> Pack:
    """Return everything at or under `paths`; never raises for what a file holds."""
    return compile_sources(collect(paths))


def compile_sources(sources: Sequence[RuleSource]) -> Pack:
    """Return everything in files already read; never raises for what they hold."""
    found = _reading(sources)
    return _pack(_compiled(found, _NO_RULES, fingerprint(sources)), found, {})


def compile_beside(plan: Plan, tests: Tests, its: Sequence[RuleSource], others: Sequence[RuleSource]) -> Pack | None:
    """Return what `compile_sources` makes of the files of a plan and others, but for the drafts and findings of the plan's own.

    The plan's rules stay as they are: they were sound alone, and no rule of another file is part of what they say. None where
    a name is taken: then all have to be compiled together, for that to be told where it is said.

    Args:
        tests: those of the plan.
        its: the files that the plan was made of; their terms may be used.
    """
    found = _reading([*(source for source in its if source.kind == TERMS), *others])
    taken = {*plan.rules(), *(id_ for rule in plan.rules().values() for id_ in rule.replaces)}
    named = {*found.drafts, *(id_ for draft in found.drafts.values() for id_ in draft.file.replaces)}
    layouts = {*found.components} & {each.name for each in plan.components} | {*found.formats} & {e.name for e in plan.formats}
    if named & taken or layouts:
        return None
    pack = _pack(_compiled(found, plan, fingerprint((*its, *others))), found, tests)
    return None if any(each.code == Code.DUPLICATE_ID.id for each in pack.diagnostics) else pack


def _pack(plan: Plan, found: _FileReading, tests: Tests) -> Pack:
    every = {**tests, **{draft.id: draft.tests for draft in found.drafts.values()}}
    findings = tuple(each for report in found.reports for each in report.all())
    return Pack(plan, dict(sorted(every.items())), findings, found.drafts)


def _reading(sources: Sequence[RuleSource]) -> _FileReading:
    found = _FileReading()
    for source in sorted(sources, key=lambda each: each.kind != TERMS):  # rules are read with the terms at hand
        _read(source, found)
    return found


class _Understood(Struct, frozen=True):
    """What one file says by itself, and the findings about it so far."""

    document: RuleDocument
    made: _Made | None
    findings: tuple[Diagnostic, ...]


def _read(source: RuleSource, found: _FileReading) -> None:
    understood = _understood(source, tuple(found.terms.items()))
    document, made = understood.document, understood.made
    report = Report(document, understood.findings)
    found.reports.append(report)
    if isinstance(made, Draft):
        _keep(made.id, replace(made, report=report), found.drafts, document.find(["id"]), report)
    elif isinstance(made, Format):
        _keep(made.name, made, found.formats, document.find(["name"]), report)
    elif isinstance(made, Component):
        _keep(made.name, made, found.components, document.find(["name"]), report)
        if made.unless:
            found.giving_way.append((made, document, report))
    elif made is not None:
        for name, texts in made.items():
            _keep(name, texts, found.terms, document.key([name]), report)


@lru_cache(maxsize=REMEMBERED)
def _understood(source: RuleSource, terms: tuple[tuple[str, tuple[str, ...]], ...]) -> _Understood:
    """Return what a file says by itself; remembered, as most of the time goes there and rules are loaded again for each change
    to one of them."""
    path = str(source.path)
    if source.data is None:
        report = Report(RuleDocument(path, (), MapNode(START, ())))
        report.add(Code.FILE_UNREADABLE, SourceMark(0, 0, 0), source.why, "check the path and its permissions")
        return _Understood(report.document, None, report.all())
    document, report = read(path, source.data)
    made = _made(source.kind, document, report, dict(terms)) if document.root.entries else None
    return _Understood(document, made, report.all())


def _made(kind: str, document: RuleDocument, report: Report, terms: Terms) -> _Made | None:
    if kind == TERMS:
        return terms_of(document, report)
    if kind == "component":
        return draft_component(document, report)
    if kind == "format":
        return draft_format(document, report)
    return draft_rule(document, report, terms)


def _check_giving_way(found: _FileReading) -> None:
    """Report components whose `unless` names none, or one that gives way itself: who it is then would go round in a circle."""
    for component, document, report in found.giving_way:
        other, at = found.components.get(component.unless), document.find(["unless"])
        if other is None:
            help_line = did_you_mean(component.unless, found.components, "name a component: a file of a folder `components`")
            report.add(Code.UNKNOWN_RULE, at, f"there is no component `{component.unless}`", help_line)
        elif other.unless:
            message = f"`{component.unless}` has an `unless` itself"
            report.add(Code.UNLESS_CHAIN, at, message, "let one component give way to one that never does")


def _keep(id_: str, made: T, into: dict[str, T], at: Node, report: Report) -> None:
    """Enter what was made under its id, which stands `at`; a second one of the same id is reported and left out."""
    if id_ in into:
        help_line = "give one of them another id, or override it"
        report.add(Code.DUPLICATE_ID, at, f"`{id_}` is defined in another file too", help_line)
        return
    into[id_] = made


def _compiled(found: _FileReading, beside: Plan, digest: str) -> Plan:
    """Return the plan of what was found and of what was compiled before; what is wrong goes to the reports."""
    found.components |= {each.name: each for each in beside.components}
    found.formats |= {each.name: each for each in beside.formats}
    known = world(found.drafts, found.components, tuple(found.formats.values()), outlines_of(beside))
    check_links(known)
    _check_giving_way(found)
    signatures, correlations = list(beside.signatures), list(beside.correlations)
    for draft in plan_order(known.drafts):
        if draft.file.correlation is None:
            signatures.append(signature(draft, known))
        elif (made := correlation(draft, known)) is not None:
            correlations.append(made)
    return Plan(
        formats=tuple(sorted(known.formats, key=lambda each: (each.rank, each.name))),
        components=tuple(sorted(known.components.values(), key=lambda each: each.name)),
        signatures=tuple(sorted(signatures, key=lambda each: each.rule.id)),
        correlations=tuple(sorted(correlations, key=lambda each: each.rule.id)),
        hash=digest,
    )
