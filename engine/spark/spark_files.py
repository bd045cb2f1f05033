"""The files that the driver has for its Python processes (SparkContext.addFile)."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkFiles


def spark_file(name: str) -> Path:
    """Return the path of a file in this process of Spark. The planner of a stream is given a folder below the one in which the
    driver has its files (PythonPlannerRunner, `streaming_job`)."""
    path = Path(SparkFiles.getRootDirectory()) / name
    return path if path.exists() else path.parents[1] / name
