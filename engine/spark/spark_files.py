"""The files that the driver has for its Python processes (SparkContext.addFile)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_file(spark: SparkSession, path: Path) -> None:
    """Add a file for all executors. Spark makes its copy executable for everybody; it is for this user alone."""
    spark.sparkContext.addFile(str(path))
    with suppress(OSError):
        (Path(SparkFiles.getRootDirectory()) / path.name).chmod(0o600)


def spark_file(name: str) -> Path:
    """Return the path of a file in this process of Spark. The planner of a stream is given a folder below the one in which the
    driver has its files (PythonPlannerRunner, `streaming_job`)."""
    path = Path(SparkFiles.getRootDirectory()) / name
    return path if path.exists() else path.parents[1] / name
