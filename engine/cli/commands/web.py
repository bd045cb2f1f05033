"""The users of the pages: add one, change a password, list and remove them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.config import load
from engine.errors import UsageError
from engine.web.passwords import put_user, read_users, remove_user

HELP = """\
The users who may sign in to the pages (web.auth.users). A password is asked for twice, or is the first line of stdin with
--stdin. A change counts at once, and ends the sessions of that user.

\b
Examples:
  tocsin web passwd mina -c tocsin.yml
  pass show tocsin/jun | tocsin web passwd jun -c tocsin.yml --stdin
  tocsin web users -c tocsin.yml

\b
Exit codes: 0 done, 2 usage or bad configuration, 3 failure.
"""

T = TypeVar("T")

app = typer.Typer(help=HELP, no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name that the user signs in with.")]


@app.command("passwd")
def set_password(
    name: NameArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    stdin: Annotated[bool, typer.Option("--stdin", help="Read the password from stdin.")] = False,
) -> None:
    """Add a user, or change the password of one."""
    path = _users_file(config)
    password = sys.stdin.readline().rstrip("\r\n") if stdin else _asked()
    is_new = _tried(path, lambda: put_user(path, name, password))
    print(f"{name} {'was added to' if is_new else 'has a new password in'} {path}")


@app.command("users")
def list_users(config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """List the users."""
    path = _users_file(config)
    names = list(_tried(path, lambda: read_users(path))) if path.exists() else []
    if format is OutputFormat.JSON:
        print_json(names)
    elif names:
        print("\n".join(names))


@app.command("remove")
def remove(name: NameArgument, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Remove a user; the sessions of that user end."""
    path = _users_file(config)
    if not _tried(path, lambda: remove_user(path, name)):
        raise UsageError(f"there is no user `{name}` in {path}; see tocsin web users")
    print(f"{name} was removed from {path}")


def _users_file(config: Path) -> Path:
    auth = load(config).web.auth
    if auth is None or auth.users is None:
        raise UsageError(f"{config}: web.auth.users names no file; write for example web: {{auth: {{users: tocsin.users}}}}")
    return auth.users


def _asked() -> str:
    try:
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt="Again", err=True))
    except typer.Abort:
        raise UsageError("no password was given; from a program, use --stdin") from None


def _tried(path: Path, change: Callable[[], T]) -> T:
    try:
        return change()
    except OSError as error:
        raise UsageError(f"{path}: the users cannot be read or written ({error.strerror})") from None
