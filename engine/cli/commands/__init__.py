"""The commands, one a file: `<name>.py` defines `app = typer.Typer(...)` and is imported only for `tocsin <name>`.

The first line of the module's docstring is the command's line in `tocsin --help`. A file that starts with `_` is no command.
"""
