"""S3 on loopback: the server of moto, which keeps what it is given in memory. It has a Python environment of its own, in the
user's cache: only a test that takes minutes needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from tests.servers.broker import free_ports
from tests.servers.ending import kill
from tests.servers.jars import Artifact, NoJars, jars
from tests.servers.spark_cluster import until

HADOOP = "3.5.0"  # the version inside pyspark
MOTO = "5.2.5"
BUCKET = "tocsin"
WITHIN_S = 600
_SDK, _SDK_VERSION = "software.amazon.awssdk", "2.35.4"  # what hadoop-aws names; of its bundle of 686 MB these parts are needed
_ARTIFACTS: list[Artifact] = [
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    *((_SDK, name, _SDK_VERSION) for name in ("s3", "s3-transfer-manager", "sts")),
]
_WITHOUT = [(_SDK, "bundle"), ("io.netty", "*"), ("org.slf4j", "*"), ("commons-logging", "*")]  # Spark has its own


class SharedFolder(Struct, frozen=True):
    """A folder that all machines reach, and what Spark needs for it under `spark.conf`."""

    url: str
    conf: Mapping[str, str]


@contextmanager
def s3(folder: Path) -> Iterator[SharedFolder]:
    """Give an empty bucket; end its server with the block. Raises NoJars."""
    libs = jars(f"hadoop-aws-{HADOOP}", _ARTIFACTS, without=_WITHOUT)
    server = _moto()
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(server), "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    try:
        until(lambda: _answers(f"{address}/moto-api/"), "S3")
        with urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"), timeout=30):
            pass
        yield SharedFolder(f"s3a://{BUCKET}/checkpoint", _conf(libs, address))
    finally:
        kill(process)


def _conf(libs: Path, address: str) -> Mapping[str, str]:
    return {
        "spark.driver.extraClassPath": f"{libs}/*",
        "spark.executor.extraClassPath": f"{libs}/*",
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "env:TOCSIN_SPARK_SECRET",  # any pair of keys will do
        "spark.hadoop.fs.s3a.secret.key": "env:TOCSIN_SPARK_SECRET",
    }


def _moto() -> Path:
    """Return the program, installing it the first time. Raises NoJars."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin" / "servers"
    home = cache / f"moto-{MOTO}"
    done = home / "done"
    if not done.exists():
        for command in (
            [sys.executable, "-m", "venv", str(home)],
            [f"{home}/bin/pip", "install", "-q", f"moto[server]=={MOTO}"],
        ):
            installed = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
            if installed.returncode:
                raise NoJars(f"moto cannot be installed: {installed.stderr.strip()[-1000:]}")
        done.touch()
    return home / "bin" / "moto_server"


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False
