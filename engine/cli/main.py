"""The entry point `tocsin`: find the command in engine/cli/commands, run it, and turn every failure into a sentence and an exit
code.

Only the module of the requested command is imported, so that `tocsin --help` is fast and no command pays for another.
Exit codes: 0 nothing found, 1 found, 2 usage or bad rules or configuration, 3 failure. By the custom of shells,
130 means interrupted (Ctrl-C) and 141 that the reader of the output went away.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as build_command

from engine import __version__
from engine.cli import commands, streams
from engine.cli.exits import BAD_REQUEST, FAILURE, INTERRUPTED, NOTHING_FOUND, READER_GONE
from engine.cli.own_log import report_defect, report_failure
from engine.errors import ConfigError, DiagnosticsError, RulesError, RuntimeMissing, TocsinError, UsageError

WEB_PACKAGES = ("argon2", "itsdangerous", "starlette", "uvicorn")  # the packages that only the extra `web` installs

EXAMPLES = """\
Reads the logs around Apache Kafka, recognises what went wrong, and says it once: cause, proof, and the fix with its numbers.

\b
Examples:
  tocsin scan server.log connect.log
  docker logs kafka-connect 2>&1 | tocsin scan -
  tocsin rules list

\b
Exit codes: 0 nothing found, 1 found, 2 usage or bad rules or configuration, 3 failure.
"""


def command_files() -> Mapping[str, Path]:
    """Return the file of every command by name, sorted: the files of engine/cli/commands that do not start with `_`."""
    files = sorted(path for folder in commands.__path__ for path in Path(folder).glob("[!_]*.py"))
    return {path.stem.replace("_", "-"): path for path in files}


def summary(path: Path) -> str:
    """Return a command's one-line help without importing it: the first line of its module's docstring."""
    source = path.read_text(encoding="utf-8")
    return source.partition('"""')[2].partition("\n")[0].removesuffix('"""').strip()


def exit_code(error: TocsinError) -> int:
    """Return the exit code of `error`: 2 when the request or its files are wrong, 3 when something failed."""
    return BAD_REQUEST if isinstance(error, UsageError | RulesError | ConfigError) else FAILURE


def explanation(error: TocsinError) -> str:
    """Return the text to print for `error`: its sentence, or all of its diagnostics with their positions."""
    if not isinstance(error, DiagnosticsError):
        return f"tocsin: {error}"
    count = len(error.diagnostics)
    closing = f"tocsin: {count} problem{'s' if count != 1 else ''} found; nothing was run"
    return "\n\n".join([*(d.render() for d in error.diagnostics), closing])


class Commands(TyperGroup):
    """The group of all commands. Imports only the command that is requested."""

    _completes_names = False

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what may follow on the command line, for the completion of a shell; no command is imported for its name."""
        self._completes_names = True
        try:
            return list(super().shell_complete(ctx, incomplete))
        finally:
            self._completes_names = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, sorted."""
        return list(command_files())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and build a command; return None when there is no such file. Raises RuntimeMissing."""
        if cmd_name not in command_files():
            return None
        if self._completes_names:
            return TyperCommand(cmd_name, callback=None, help=summary(command_files()[cmd_name]))
        app = _import_command(cmd_name)
        app.rich_markup_mode = None  # plain help: loading rich would double the start-up time
        app._add_completion = False
        command = build_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the first lines of their files, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(path)) for name, path in command_files().items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of `args`. Raises UsageError, which names the nearest command, when there is no such command."""
        if args and args[0] not in command_files():
            matches = get_close_matches(args[0], command_files(), n=1)
            raise UsageError(
                f"there is no command `{args[0]}`" + (f"; did you mean `{matches[0]}`?" if matches else "; see tocsin --help")
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and flush its output, so that a closed pipe is noticed here."""
        _report_unused_cache()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise typer.Exit(READER_GONE) from None


HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}  # of every command: they inherit it
application = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    help=EXAMPLES,
    context_settings=HELP_OPTIONS,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"tocsin {__version__}")
        raise typer.Exit


@application.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Take the options before the command; the help text is EXAMPLES."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run tocsin with `arguments` (by default those of the process); report failures on stderr; return the exit code."""
    streams.prepare()
    try:
        return _run_guarded(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        streams.settle()


def _run_guarded(arguments: Sequence[str] | None) -> int:
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return READER_GONE
    except streams.UnwrittenError as error:
        print(f"tocsin: cannot write output: {error.strerror}", file=sys.stderr)
        return FAILURE
    except TocsinError as error:
        report_failure(error, explanation(error))
        return exit_code(error)
    except Exception:
        report_defect(
            traceback.format_exc(), "tocsin: this is a defect of tocsin itself; please report it with the lines above"
        )
        return FAILURE


def _run(arguments: Sequence[str] | None) -> int:
    try:
        build_command(application).main(arguments, prog_name="tocsin")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else NOTHING_FOUND
    return NOTHING_FOUND


def _report_unused_cache() -> None:
    from engine.cache import DiskCache  # noqa: PLC0415  (not needed for help)

    if (refusal := DiskCache().refusal) is not None:
        print(f"tocsin: {refusal}", file=sys.stderr)


def _import_command(command: str) -> typer.Typer:
    try:
        app: typer.Typer = import_module(f"engine.cli.commands.{command.replace('-', '_')}").app
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("engine", "connectors"):
            raise
        problem = f"`tocsin {command}` needs the package {missing.name}"
        extra = "web" if missing.name in WEB_PACKAGES else "spark"
        raise RuntimeMissing(f"{problem}; install what is optional with: pip install 'tocsin[{extra}]'") from missing
    return app


if __name__ == "__main__":
    sys.exit(main())
