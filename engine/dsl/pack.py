"""Compile a pack of files: rules with their tests, components, formats and dialects; collect every finding about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.dsl.build import correlation, plan_order, signature
from engine.dsl.codes import Code
from engine.dsl.dialects import draft_dialect, setting_levels
from engine.dsl.document import START, MapNode, Node, RuleDocument, SourceMark
from engine.dsl.drafts import Draft, draft_component, draft_format, draft_rule
from engine.dsl.files import TERMS, RuleSource, collect, fingerprint
from engine.dsl.links import check_links
from engine.dsl.reader import read
from engine.dsl.report import Report, did_you_mean
from engine.dsl.rule_test import Tests
from engine.dsl.symbols import outlines_of, symbol_table
from engine.dsl.terms import Terms, prefix_of, terms_of
from engine.model.diagnostics import Diagnostic, Level
from engine.model.dialects import Dialect
from engine.model.rules import Component, Format, Plan

T = TypeVar("T")
_Parsed = Draft | Component | Format | Dialect | Terms

_NO_RULES = Plan((), (), (), ())
MAX_CACHED_FILES = 1000  # more than the shipped rules have


class Pack(Struct, frozen=True):
    """The result of compiling files: the plan of whatever compiled, the tests by rule id, every finding by file and place,
    and the drafts by rule id and the files of terms, for checks that need the files. Do not run the plan when `errors()` is not
    empty."""

    plan: Plan
    tests: Tests
    diagnostics: tuple[Diagnostic, ...]
    drafts: Mapping[str, Draft] = field(default_factory=dict)
    term_files: tuple[RuleDocument, ...] = ()

    def errors(self) -> tuple[Diagnostic, ...]:
        """Return the findings that stop loading."""
        return tuple(finding for finding in self.diagnostics if finding.level is Level.ERROR)


class _FileReading(Struct):
    """The results of the first pass over the files, filled file by file."""

    drafts: dict[str, Draft] = field(default_factory=dict)
    components: dict[str, Component] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    dialects: dict[str, Dialect] = field(default_factory=dict)
    terms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    term_files: list[RuleDocument] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    with_unless: list[tuple[Component, RuleDocument, Report]] = field(default_factory=list)  # components with `unless`


def load_pack(paths: Sequence[Path]) -> Pack:
    """Compile every file at or under `paths`. Never raises for the contents of a file."""
    return compile_sources(collect(paths))


def compile_sources(sources: Sequence[RuleSource]) -> Pack:
    """Compile files that are already read. Never raises for their contents."""
    reading = _reading(sources)
    return _pack(_compiled(reading, _NO_RULES, fingerprint(sources)), reading, {})


def compile_beside(plan: Plan, tests: Tests, plan_sources: Sequence[RuleSource], others: Sequence[RuleSource]) -> Pack | None:
    """Compile `others` and add them to a compiled plan; the pack lacks the drafts and findings of the plan's own files.

    The plan's rules stay as they are: they had no errors, and they do not depend on rules of other files. Return None where
    a name is defined twice: compile all files together then, so that the finding names the place.

    Args:
        tests: the tests of the plan.
        plan_sources: the files that the plan was compiled from; `others` may use their terms.
    """
    reading = _reading([*(source for source in plan_sources if source.kind == TERMS), *others])
    used_ids = {*plan.rules(), *(id_ for rule in plan.rules().values() for id_ in rule.replaces)}
    ids = {*reading.drafts, *(id_ for draft in reading.drafts.values() for id_ in draft.file.replaces)}
    kinds = ((reading.components, plan.components), (reading.formats, plan.formats), (reading.dialects, plan.dialects))
    if ids & used_ids or any({*own} & {other.name for other in others_of_kind} for own, others_of_kind in kinds):
        return None
    own = {str(source.path) for source in others}
    reading.term_files = [document for document in reading.term_files if document.path in own]
    pack = _pack(_compiled(reading, plan, fingerprint((*plan_sources, *others))), reading, tests)
    return None if any(finding.code == Code.DUPLICATE_ID.id for finding in pack.diagnostics) else pack


def _pack(plan: Plan, reading: _FileReading, tests: Tests) -> Pack:
    all_tests = {**tests, **{draft.id: draft.tests for draft in reading.drafts.values()}}
    findings = tuple(finding for report in reading.reports for finding in report.all())
    return Pack(plan, dict(sorted(all_tests.items())), findings, reading.drafts, tuple(reading.term_files))


def _reading(sources: Sequence[RuleSource]) -> _FileReading:
    reading = _FileReading()
    for source in sorted(sources, key=lambda source: source.kind != TERMS):  # rules use terms
        _read(source, reading)
    return reading


class _FirstPass(Struct, frozen=True):
    """One file, parsed without the others, and the findings so far; `parsed` is None when its keys cannot be read."""

    document: RuleDocument
    parsed: _Parsed | None
    findings: tuple[Diagnostic, ...]


def _read(source: RuleSource, reading: _FileReading) -> None:
    first_pass = _first_pass(source, tuple(reading.terms.items()))
    document, parsed = first_pass.document, first_pass.parsed
    report = Report(document, first_pass.findings)
    reading.reports.append(report)
    if isinstance(parsed, Draft):
        _register(parsed.id, replace(parsed, report=report), reading.drafts, document.find(["id"]), report)
    elif isinstance(parsed, Format):
        _register(parsed.name, parsed, reading.formats, document.find(["name"]), report)
    elif isinstance(parsed, Dialect):
        _register(parsed.name, parsed, reading.dialects, document.find(["name"]), report)
    elif isinstance(parsed, Component):
        _register(parsed.name, parsed, reading.components, document.find(["name"]), report)
        if parsed.unless:
            reading.with_unless.append((parsed, document, report))
    elif parsed is not None:
        prefix = prefix_of(document.path)
        reading.term_files.append(document)
        for name, texts in parsed.items():
            _register(name, texts, reading.terms, document.key([name.removeprefix(prefix)]), report)


@lru_cache(maxsize=MAX_CACHED_FILES)
def _first_pass(source: RuleSource, terms: tuple[tuple[str, tuple[str, ...]], ...]) -> _FirstPass:
    """Parse one file by itself. Cached: parsing takes most of the load time, and a change to one file reloads all."""
    path = str(source.path)
    if source.data is None:
        report = Report(RuleDocument(path, (), MapNode(START, ())))
        report.add(Code.FILE_UNREADABLE, SourceMark(0, 0, 0), source.why, "check the path and its permissions")
        return _FirstPass(report.document, None, report.all())
    document, report = read(path, source.data)
    parsed = _parse(source.kind, document, report, dict(terms)) if document.root.entries else None
    return _FirstPass(document, parsed, report.all())


def _parse(kind: str, document: RuleDocument, report: Report, terms: Terms) -> _Parsed | None:
    if kind == TERMS:
        return terms_of(document, report)
    if kind == "component":
        return draft_component(document, report)
    if kind == "format":
        return draft_format(document, report)
    if kind == "dialect":
        return draft_dialect(document, report)
    return draft_rule(document, report, terms)


def _check_unless(reading: _FileReading) -> None:
    """Report components whose `unless` names no component, or one that has an `unless` itself, which could form a circle."""
    for component, document, report in reading.with_unless:
        other, at = reading.components.get(component.unless), document.find(["unless"])
        if other is None:
            help_line = did_you_mean(component.unless, reading.components, "name a component: a file of a folder `components`")
            report.add(Code.UNKNOWN_RULE, at, f"there is no component `{component.unless}`", help_line)
        elif other.unless:
            message = f"`{component.unless}` has an `unless` itself"
            report.add(Code.UNLESS_CHAIN, at, message, "let one component give way to one that never does")


def _register(id_: str, item: T, items: dict[str, T], at: Node, report: Report) -> None:
    """Add `item` under its id, which is written `at`; report and drop a second one of the same id."""
    if id_ in items:
        help_line = "give one of them another id, or override it"
        report.add(Code.DUPLICATE_ID, at, f"`{id_}` is defined in another file too", help_line)
        return
    items[id_] = item


def _compiled(reading: _FileReading, beside: Plan, digest: str) -> Plan:
    """Return the plan `beside` with the rules, formats and other definitions of `reading` added; errors go to the reports."""
    reading.components |= {component.name: component for component in beside.components}
    reading.formats |= {format_.name: format_ for format_ in beside.formats}
    reading.dialects |= {dialect.name: dialect for dialect in beside.dialects}
    symbols = symbol_table(reading.drafts, reading.components, tuple(reading.formats.values()), outlines_of(beside))
    check_links(symbols)
    _check_unless(reading)
    signatures, correlations = list(beside.signatures), list(beside.correlations)
    for draft in plan_order(symbols.drafts):
        if draft.file.correlation is None:
            signatures.append(signature(draft, symbols))
        elif (compiled := correlation(draft, symbols)) is not None:
            correlations.append(compiled)
    return Plan(
        formats=tuple(sorted(symbols.formats, key=lambda format_: (format_.rank, format_.name))),
        components=tuple(sorted(symbols.components.values(), key=lambda component: component.name)),
        signatures=tuple(sorted(signatures, key=lambda signature: signature.rule.id)),
        correlations=tuple(sorted(correlations, key=lambda correlation: correlation.rule.id)),
        hash=digest,
        dialects=tuple(sorted(reading.dialects.values(), key=lambda dialect: (dialect.rank, dialect.name))),
        setting_levels=setting_levels([*(part.rule for part in signatures), *(part.rule for part in correlations)]),
    )
