"""The rules: list and show them, check their files, run the tests they carry, and help to write them."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.authoring.commands import register
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import BAD_REQUEST, FOUND, NOTHING_FOUND
from engine.cli.output import FormatOption, OutputFormat, count, print_json
from engine.cli.rule_choice import Folders, plan_of, rule_of, tests_of
from engine.cli.rulebook import rule_paths, with_layouts
from engine.dsl.quantities import duration_s
from engine.dsl.rule_test import RuleTest, Tests
from engine.dsl.templates import outline
from engine.errors import RuntimeMissing, UsageError
from engine.model.diagnostics import Diagnostic, Level
from engine.model.rules import Plan, Rule
from engine.model.visible import visible

if TYPE_CHECKING:
    from engine.cli.rule_tests import Outcome

HELP = """\
List and show rules, check their files, run the tests they carry, and help to write them.

Without --rules these are the built-in rules; with it, those of the named folders (the word `builtin` stands for the built-in
ones, so that `--rules builtin --rules ./mine` is both).

\b
Examples:
  tocsin rules list
  tocsin rules show connect-record-too-large-client
  tocsin rules lint --rules ./mine --format json
  tocsin rules test --rules ./mine my-rule
  tocsin rules new trouble.log --out ./mine
  tocsin rules explain --rules ./mine my-rule trouble.log
  tocsin rules explain-code TOC204
  tocsin rules stats -c tocsin.yml

\b
Exit codes: 0 nothing wrong, 1 warnings or failed tests (explain: the rule fires), 2 usage or bad rules.
"""


EXPLAINED = 5  # failing tests that are explained

app = typer.Typer(help=HELP, no_args_is_help=True)
register(app)


@app.command("list")
def list_rules(rules: Folders = None, format: FormatOption = OutputFormat.TEXT) -> None:
    """List every rule: id, severity, component, status, title."""
    plan, tests = plan_of(rules), tests_of(rules)
    rows = [_row(rule, plan, tests) for _, rule in sorted(plan.rules().items())]
    if format is OutputFormat.JSON:
        print_json(rows)
        return
    width = max((len(row["id"]) for row in rows), default=0)
    for row in rows:
        title = visible(outline(row["title"]))
        print(f"{row['id']:{width}}  {row['severity']:8}  {row['component']:15}  {row['status']:12}  {title}")
    print(f"\n{len(rows)} rules, {sum(row['tests'] for row in rows)} tests")


@app.command("stats")
def show_stats(
    config: ConfigOption = DEFAULT_CONFIG,
    since: Annotated[str, typer.Option(metavar="DURATION", help="Only of incidents since then, for example 30d.")] = "",
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Show for each rule how often people were told, acknowledged, and called it useful or not."""
    try:
        since_s = duration_s(since) if since else None
        from engine.cli.rule_stats import print_stats  # noqa: PLC0415  (the store, which the other commands do without)
    except ValueError:
        raise UsageError(f"`{since}` is not a duration; write for example 12h or 30d") from None
    except ModuleNotFoundError as missing:
        raise RuntimeMissing(f"the incident store needs {missing.name}: pip install 'tocsin[spark]'") from None
    print_stats(config, since_s, format is OutputFormat.JSON)


@app.command("show")
def show_rule(
    id: Annotated[str, typer.Argument(metavar="ID")], rules: Folders = None, format: FormatOption = OutputFormat.TEXT
) -> None:
    """Show one rule: what it captures, what explains it, and its file as written."""
    from engine.dsl.document import plain  # noqa: PLC0415  (the reader of YAML, which the other commands do without)
    from engine.dsl.reader import read  # noqa: PLC0415

    plan = plan_of(rules)
    rule = rule_of(plan, id)
    document, _ = read(rule.path, Path(rule.path).read_bytes())
    causes = sorted(other.id for other in plan.rules().values() for entry in other.explains if id in entry.rules)
    if format is OutputFormat.JSON:
        details = {"captures": dict(rule.captures), "explained_by": causes, "rule": plain(document.root)}
        print_json({**_row(rule, plan, tests_of(rules)), **details})
        return
    print(f"{rule.id}  ({rule.path})")
    print(f"  captures: {', '.join(f'{name} ({type_})' for name, type_ in rule.captures.items()) or 'nothing'}")
    print(f"  explained by: {', '.join(causes) or 'no other rule'}\n")
    print("\n".join(visible(line) for line in document.lines).rstrip())


@app.command("lint")
def lint_rules(rules: Folders = None, format: FormatOption = OutputFormat.TEXT) -> None:
    """Check every file: report all errors, and advice such as missing near misses, at once."""
    from engine.cli.linting import lint  # noqa: PLC0415  (plays the tests, which most of these commands need not load)

    findings = lint(rule_paths(rules))
    if format is OutputFormat.JSON:
        print_json([_as_json(finding) for finding in findings])
    else:
        _print_findings(findings)
    raise typer.Exit(_lint_exit(findings))


@app.command("test")
def test_rules(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Rules to test; all of them without.")] = None,
    rules: Folders = None,
    format: FormatOption = OutputFormat.TEXT,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and run the tests of a file again when it changes; Ctrl-C ends.")
    ] = False,
) -> None:
    """Run the tests of the rules and report expected and actual results; of the first that fail also why the rule fires or
    not."""
    if watch:
        from engine.cli.watched_tests import watch_tests  # noqa: PLC0415

        raise typer.Exit(watch_tests(rule_paths(rules), lambda changed: _test(ids or (), rules, format, changed)))
    raise typer.Exit(FOUND if _test(ids or (), rules, format) else NOTHING_FOUND)


def _test(ids: Sequence[str], rules: Folders, format: OutputFormat, changed: Container[str] | None = None) -> Sequence[str]:
    """Run the tests of the rules `ids`, of all without any; with `changed` only those of these files. Return the files with a
    test that failed."""
    plan, tests = plan_of(rules), tests_of(rules)
    for id in ids:
        rule_of(plan, id)
    selected = [test for id in (ids or sorted(tests)) for test in tests[id] if changed is None or test.path in changed]
    return [outcome.test.path for outcome in _run(selected, with_layouts(plan), format)]


def _row(rule: Rule, plan: Plan, tests: Tests) -> dict[str, Any]:
    return {
        "id": rule.id,
        "title": "".join(part if isinstance(part, str) else part.source for part in rule.title.parts),
        "severity": rule.severity,
        "status": rule.status,
        "component": rule.component,
        "kind": next((correlation.type for correlation in plan.correlations if correlation.rule.id == rule.id), "signature"),
        "path": rule.path,
        "tests": len(tests[rule.id]),
    }


def _as_json(finding: Diagnostic) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.level.value,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "help": finding.help,
    }


def _print_findings(findings: Sequence[Diagnostic]) -> None:
    for finding in findings:
        print(finding.render(), end="\n\n")
    errors = sum(finding.level is Level.ERROR for finding in findings)
    print(f"{_count_of(errors, 'error')}, {_count_of(len(findings) - errors, 'warning')}")


def _count_of(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _lint_exit(findings: Sequence[Diagnostic]) -> int:
    if any(finding.level is Level.ERROR for finding in findings):
        return BAD_REQUEST
    return FOUND if findings else NOTHING_FOUND


def _run(tests: Sequence[RuleTest], plan: Plan, format: OutputFormat) -> Sequence[Outcome]:
    """Run `tests` and print the results; return those that failed."""
    from engine.cli.authoring.explaining import explained_test  # noqa: PLC0415  (only this command needs the pipeline)
    from engine.cli.rule_tests import difference, run_test  # noqa: PLC0415

    outcomes = [run_test(test, plan) for test in _with_progress(tests)]
    failed = [outcome for outcome in outcomes if outcome.problems]
    if format is OutputFormat.JSON:
        print_json([_outcome_json(o.test, o.problems) for o in outcomes])
        return failed
    for number, outcome in enumerate(failed):
        print(f"FAILED {outcome.name}")
        for expected, got in outcome.problems:
            print(difference(expected, got))
        if number < EXPLAINED:
            print("\n".join(f"    {visible(line)}" for line in explained_test(outcome.test, plan).lines(1) if line))
        print()
    rules = len({test.rule_id for test in tests})
    print(f"{len(tests) - len(failed)} of {count(len(tests), 'test')} of {count(rules, 'rule')} passed")
    return failed


def _outcome_json(test: RuleTest, problems: Iterable[tuple[str, str]]) -> dict[str, Any]:
    wrong = [{"expected": expected, "got": got} for expected, got in problems]
    return {"rule": test.rule_id, "path": test.path, "line": test.line, "passed": not wrong, "problems": wrong}


def _with_progress(tests: Sequence[RuleTest]) -> Iterator[RuleTest]:
    """Yield `tests` with a progress bar on stderr when that is a terminal."""
    if not sys.stderr.isatty():
        yield from tests
        return
    from rich.console import Console  # noqa: PLC0415  (rich is slow to import)
    from rich.progress import track  # noqa: PLC0415

    yield from track(tests, "testing rules", console=Console(stderr=True), transient=True)
