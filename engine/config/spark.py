"""`spark` in tocsin.yml: where the job runs, with what, and where its checkpoint is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field

from engine.config.faults import finding_error
from engine.dsl.codes import Code
from engine.dsl.schema import Count, Duration, Flag, Strict, Text
from engine.secrets import is_secret_setting, parse_secret


def _conf(value: Any) -> Any:
    """Return the settings of Spark with references in place of secrets."""
    if not isinstance(value, dict):
        raise finding_error(Code.BAD_OPTION, "must be a map of settings of Spark", "for example: {spark.executor.memory: 2g}")
    return {name: _spark_setting(str(name), setting) for name, setting in value.items()}


def _spark_setting(name: str, value: Any) -> Any:
    if not name.startswith("spark.") or not isinstance(value, str):
        raise finding_error(Code.BAD_OPTION, f"`{name}` is not a setting of Spark with a text", "write spark.NAME: VALUE")
    if name == "spark.master":
        raise finding_error(Code.BAD_OPTION, "`spark.master` has a key of its own", "write `master` under `spark`")
    if not is_secret_setting(name) and not value.startswith("env:"):  # such as the name of a pod, which is known there only
        return value
    try:
        return parse_secret(value)
    except ValueError:
        help = "put it into an environment variable or a file, and write env:NAME or file:PATH here"
        raise finding_error(Code.BAD_SECRET, f"`{name}` must not hold the secret itself", help) from None


SparkConfiguration = Annotated[Mapping[str, Any], BeforeValidator(_conf, json_schema_input_type=Mapping[str, str])]


class SparkEntry(Strict):
    """the resources of Spark"""

    master: Text | None = None
    conf: SparkConfiguration = Field(default={})
    cores: Count = 2
    partitions: Count | None = None
    parallelism: Count | None = None
    heap: Text = "1g"
    trigger: Duration = 1.0
    batch_lines: Count = 500_000
    batch_bytes: Count = 256 << 20
    audit: Flag = False
    checkpoint: Text | None = None


def checkpoint_url(entry: SparkEntry) -> str:
    """Return the URL of a checkpoint that only Hadoop knows (`hdfs:`, `s3a:`); empty for one in a folder."""
    checkpoint = entry.checkpoint or ""
    scheme, colon, _ = checkpoint.partition(":")
    return checkpoint if colon and scheme.isalnum() and scheme != "file" else ""


def folder_of_run(entry: SparkEntry, folder: Path, default: Path) -> Path:
    """Return the folder of the run on this machine: that of the checkpoint, or `default`. A relative path is relative to
    `folder`."""
    checkpoint = entry.checkpoint
    if checkpoint is None or checkpoint_url(entry):
        return default
    return folder / (unquote(urlsplit(checkpoint).path) if checkpoint.startswith("file:") else checkpoint)
