"""The floor that the job is measured against: Spark's own Kafka source in the JVM, and Python that only counts the lines.

`python -m tests.bench.floor ADDRESS TOPIC BATCH_LINES` counts the topic in batches and says how many lines each had.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyspark.sql import SparkSession

from tests.servers.jars import Artifact, jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# these four without what they ask for: pyspark brings the rest
CONNECTOR: tuple[Artifact, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)


def count(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield, of each Arrow batch, how many rows it has."""
    for batch in batches:
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([batch.num_rows])], ["lines"])


def main(address: str, topic: str, batch_lines: str) -> None:
    """Count what the topic holds, batch by batch."""
    folder = jars("spark-kafka", (), CONNECTOR)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=_settings(folder)).getOrCreate()
    given = {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"}
    lines = spark.readStream.format("kafka").options(**given, maxOffsetsPerTrigger=batch_lines).load()
    counted = lines.select("value").mapInArrow(count, "lines long")
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = counted.writeStream.foreachBatch(_say).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def _settings(folder: Path) -> dict[str, str]:
    """Return how Spark is set up: as it comes, on the loopback, with the jars of `folder`."""
    return {
        "spark.jars": ",".join(map(str, sorted(folder.glob("*.jar")))),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "1",
    }


def _say(batch: DataFrame, number: int) -> None:
    print(f"batch {number}: {sum(row.lines for row in batch.collect()):,} lines", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
