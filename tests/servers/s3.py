"""S3 on loopback: the gateway of Versity over a folder. Go builds it the first time (some minutes) and it is kept in the user's
cache: only tests that take minutes need it."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from tests.servers.broker import free_ports
from tests.servers.ending import kill
from tests.servers.jars import Artifact, NoJars, jars, kept_servers
from tests.servers.spark_cluster import until

GATEWAY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
HADOOP = "3.5.0"  # the version inside pyspark
BUCKET = "tocsin"
KEYS = {"TOCSIN_S3_ACCESS_KEY": "ACCESSOFTHETESTS", "TOCSIN_S3_SECRET_KEY": "a-secret-key-of-the-tests"}
WITHIN_S = 1800
_SDK, _SDK_VERSION = "software.amazon.awssdk", "2.35.4"  # what hadoop-aws names; of its bundle of 686 MB these parts are needed
_ARTIFACTS: list[Artifact] = [
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    *((_SDK, name, _SDK_VERSION) for name in ("s3", "s3-transfer-manager", "sts")),
]
_WITHOUT = [(_SDK, "bundle"), ("io.netty", "*"), ("org.slf4j", "*"), ("commons-logging", "*")]  # Spark has its own


class Bucket(Struct, frozen=True):
    """A bucket of a running server.

    Attributes:
        url: where a checkpoint may be.
        conf: what Spark needs for it under `spark.conf`; the keys are in the environment variables of KEYS.
        folder: its objects, as files.
    """

    url: str
    conf: Mapping[str, str]
    folder: Path


@contextmanager
def s3(folder: Path) -> Iterator[Bucket]:
    """Give an empty bucket; end its server with the block. Raises NoJars when its jars or its server cannot be had."""
    libs, server = jars(f"hadoop-aws-{HADOOP}", _ARTIFACTS, without=_WITHOUT), _gateway()
    (bucket := folder / "objects" / BUCKET).mkdir(parents=True)  # a folder is a bucket of whoever has the keys
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    access, secret = KEYS.values()
    environment = {**os.environ, "ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret}
    command = [str(server), "--port", address, "--health", "/health", "posix", str(bucket.parent)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        until(lambda: _answers(f"http://{address}/health"), "S3")
        yield Bucket(f"s3a://{BUCKET}/checkpoint", _conf(libs, f"http://{address}"), bucket)
    finally:
        kill(process)


def _conf(libs: Path, address: str) -> Mapping[str, str]:
    access, secret = KEYS
    return {
        "spark.driver.extraClassPath": f"{libs}/*",
        "spark.executor.extraClassPath": f"{libs}/*",
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": f"env:{access}",
        "spark.hadoop.fs.s3a.secret.key": f"env:{secret}",
    }


def _gateway() -> Path:
    """Return the program, building it the first time. Raises NoJars."""
    program = kept_servers() / GATEWAY.rpartition("/")[2] / "versitygw"
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise NoJars(f"there is no Go, which builds the S3 server {GATEWAY}: install Go 1.25 or newer (https://go.dev/dl)")
    fresh = program.parent.with_suffix(".building")
    environment = {**os.environ, "GOBIN": str(fresh)}
    try:
        built = subprocess.run(
            [go, "install", GATEWAY], capture_output=True, text=True, timeout=WITHIN_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoJars(f"Go did not build {GATEWAY} within {WITHIN_S} s") from error
    if built.returncode:
        raise NoJars(f"Go cannot build {GATEWAY}: {built.stderr.strip()[-1000:]}")
    program.parent.mkdir(parents=True, exist_ok=True)
    (fresh / program.name).replace(program)  # the whole of it or nothing
    return program


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False
