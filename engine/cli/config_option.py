"""The option of every command that reads a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_CONFIG = Path("tocsin.yml")

ConfigOption = Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="The configuration.")]
