"""One command a file: `<name>.py` holds `app = typer.Typer(...)` and is imported only when `tocsin <name>` is asked for.

The first line of the module's docstring is the command's line in `tocsin --help`. A file that starts with `_` is no command.
"""
