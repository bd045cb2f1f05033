"""The commands for authors of rules; `register` adds them to `tocsin rules`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.exits import FOUND, NOTHING_FOUND
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.cli.rule_choice import Folders, RuleName, plan_of, rule_of, tests_of
from engine.cli.rulebook import open_rulebook, rule_paths, with_layouts
from engine.dsl import load_valid
from engine.errors import RuntimeMissing, UsageError
from engine.model.visible import visible

MODELINE, SCHEMA_FILE = "# yaml-language-server: $schema=", "rule.schema.json"
MAX_EVENTS = 5  # that `explain` shows


def register(app: typer.Typer) -> None:
    """Add every command of this module to `app`."""
    app.command("new")(new_rule)
    app.command("explain")(explain_rule)
    app.command("preview")(preview_rule)
    app.command("docs")(write_docs)
    app.command("schema")(print_schema)
    app.command("explain-code")(explain_code)


def new_rule(
    lines: Annotated[str, typer.Argument(metavar="FILE", help="Log lines of the trouble; - is standard input.")] = "-",
    id: Annotated[str, typer.Option("--id", help="The rule's id; made of its words if not given.")] = "",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the rule file there.")] = None,
    goodlog: Annotated[
        Path | None,
        typer.Option("--goodlog", metavar="DIR", help="Ordinary logs, instead of the shipped ones."),
    ] = None,
    rules: Folders = None,
) -> None:
    """Draft a rule from log lines: pattern, entity, tests. Refused if it would fire where nothing is wrong."""
    from engine.cli.authoring.drafting import draft_rule, shipped_logs  # noqa: PLC0415  (each of these loads what it needs)

    pasted = sys.stdin.read() if lines == "-" else _read(Path(lines))
    draft = draft_rule(pasted, open_rulebook(rules).plan, id, goodlog or shipped_logs())
    notes = [f"these lines are known already: {', '.join(draft.known_rules)}"] if draft.known_rules else []
    if out is None:
        print(draft.text, end="")
    else:
        path = out / f"{draft.id}.yml"
        _write_new(path, f"{MODELINE}{SCHEMA_FILE}\n{draft.text}")
        _write_schema(out / SCHEMA_FILE)
        print(f"wrote {path}")
        notes.append(f"replace what begins with WRITE: in it, then: tocsin rules lint --rules {out}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def explain_rule(
    id: RuleName,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Log files or folders; - is standard input.")],
    rules: Folders = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Say why a rule fires on events of a log, or does not: every item and every part of its condition."""
    from engine.cli.authoring.explaining import Explanation, explain  # noqa: PLC0415

    plan = plan_of(rules)
    rule_of(plan, id)
    explanation: Explanation = explain(id, with_layouts(plan), files)
    if format is OutputFormat.JSON:
        print_json(explanation.as_json(MAX_EVENTS))
    else:
        print("\n".join(visible(line) for line in explanation.lines(MAX_EVENTS)))
    raise typer.Exit(FOUND if explanation.fires else NOTHING_FOUND)


def preview_rule(id: RuleName, rules: Folders = None, format: FormatOption = OutputFormat.TEXT) -> None:
    """Show the Slack message of a rule, as its first firing test gives it; as JSON for Slack's Block Kit Builder."""
    from engine.cli.authoring.showing import preview_incident  # noqa: PLC0415

    plan = plan_of(rules)
    rule_of(plan, id)
    incident = preview_incident(id, tests_of(rules), with_layouts(plan))
    try:
        from engine.cli.authoring.slack_preview import slack_json, slack_text  # noqa: PLC0415  (needs the extra `slack`)
    except ModuleNotFoundError as missing:
        raise RuntimeMissing(
            "`tocsin rules preview` needs what messages to Slack need: pip install 'tocsin[slack]'"
        ) from missing
    if format is OutputFormat.JSON:
        print_json(slack_json(incident))
    else:
        print(slack_text(incident))


def write_docs(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write; made if it is not there.")],
    rules: Folders = None,
) -> None:
    """Write the reference page of every rule, and an index by component and by exception."""
    from engine.cli.authoring.pages import pages  # noqa: PLC0415

    texts = pages(load_valid(rule_paths(rules)))
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(texts)} pages to {out}")


def print_schema() -> None:
    """Print the JSON Schema of rule files, for editors that complete and check."""
    from engine.dsl.json_schema import rule_schema  # noqa: PLC0415

    print(json.dumps(rule_schema(), ensure_ascii=False, indent=2))


def _write_schema(path: Path) -> None:
    """Write the schema that editors check rules by; a folder where that is not possible is no error."""
    from engine.dsl.json_schema import rule_schema  # noqa: PLC0415

    with suppress(OSError):
        path.write_text(json.dumps(rule_schema(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def explain_code(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A code of a finding, such as TOC204.")],
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Say what a finding means, why it matters, and how to cure it."""
    from engine.dsl.explanations import explanation  # noqa: PLC0415

    explained = explanation(code)
    if format is OutputFormat.JSON:
        print_json(explained.as_json())
    else:
        print("\n".join(_paragraphs(explained.paragraphs())))


def _paragraphs(texts: Iterable[tuple[str, str]]) -> Iterable[str]:
    for heading, text in texts:
        indented = "\n".join(f"  {line}" for line in text.rstrip("\n").split("\n"))
        yield f"{heading}\n{indented}\n" if heading else f"{text}\n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _write_new(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already; give the rule another id with --id") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
