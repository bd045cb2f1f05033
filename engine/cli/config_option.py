"""The option `--config` of the commands that read a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_CONFIG = Path("tocsin.yml")

ConfigOption = Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="The configuration.")]
