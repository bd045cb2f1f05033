"""Starting Spark on this machine: what it needs, said clearly when it is absent; quick to start and quiet on the terminal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from engine.errors import RuntimeMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17  # the oldest that Spark 4 runs on
PACKAGES = (
    "pyspark",
    "google.protobuf",
    "pyarrow",
    "sqlalchemy",
)  # protobuf: stateful Python dies without a word if it is absent
# Hadoop's other API, which Spark takes by default, starts a `readlink` for each file of a checkpoint that it looks at, some
# twenty processes a batch (RawLocalFileSystem.getFileLinkStatus). On a local disk both write a file aside and rename it.
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Resources(Struct, frozen=True):
    """What Spark may use. `partitions`: state partitions, fixed for the life of a checkpoint."""

    cores: int = 2
    partitions: int = 1
    heap: str = "1g"
    log: Path | None = None  # where the JVM's and the workers' standard error goes; None: nowhere


def check_runtime(environment: Mapping[str, str] = os.environ) -> None:
    """Raise RuntimeMissing, saying what to install, when Java or a Python package that Spark needs is absent or too old."""
    if missing := [name for name in PACKAGES if not _importable(name)]:
        raise RuntimeMissing(
            f"the Spark job needs Python packages that are not installed ({', '.join(missing)});"
            " install them with: pip install 'tocsin[spark]'"
        )
    java = java_command(environment)
    if java is None:
        raise RuntimeMissing(
            f"the Spark job needs Java {JAVA} or newer and found none; install a JRE, or set JAVA_HOME. {_HINT}"
        )
    found = java_version(java)
    if found is None or found < JAVA:
        raise RuntimeMissing(f"the Spark job needs Java {JAVA} or newer; {java} is {found or 'not Java'}. {_HINT}")


_HINT = "`tocsin scan` needs no Java"


def java_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the java that Spark would start: the one of JAVA_HOME, else the first on the PATH; None when there is none."""
    if home := environment.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        return str(java) if java.is_file() else None
    return shutil.which("java", path=environment.get("PATH"))


def java_version(java: str) -> int | None:
    """Return the major version of a java command, from its installation's release file, else by asking it."""
    release = Path(java).resolve().parent.parent / "release"
    with suppress(OSError):
        if (found := re.search(r'^JAVA_VERSION="([\d.]+)', release.read_text(encoding="utf-8"), re.MULTILINE)) is not None:
            return _major(found[1])
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([\d.]+)', said)
    return _major(found[1]) if found else None


def start(resources: Resources) -> SparkSession:
    """Start Spark in this process and return its session; Ctrl-C stays the caller's to handle. Raises RuntimeMissing."""
    check_runtime()
    _prepare_environment()
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  (slow to import, absent without the extra)
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    conf = SparkConf(loadDefaults=False).setAll(list(_settings(resources).items()))
    with _log(resources.log) as log:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        return SparkSession(SparkContext(gateway=gateway, conf=conf))
    finally:
        if threading.current_thread() is threading.main_thread():  # elsewhere SparkContext sets no handler, nor could we
            signal.signal(signal.SIGINT, interrupt)


def stop(spark: SparkSession) -> None:
    """End Spark, which may be gone already when somebody told the whole process group to end."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  (comes with pyspark)

    with suppress(Py4JError, OSError):
        spark.stop()


def _settings(resources: Resources) -> Mapping[str, str]:
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.app.name": "tocsin",
        "spark.master": f"local[{resources.cores}]",
        "spark.driver.memory": resources.heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(resources.partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.encodingFormat": "avro",
    }


def _prepare_environment() -> None:
    """Let workers run this interpreter and find this package, and nothing in whatever folder the job is started from."""
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(part for part in path if part))
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _log(path: Path | None) -> IO[bytes]:
    if path is None:
        return Path(os.devnull).open("wb")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that holds it
        return False


def _major(version: str) -> int:
    first, _, rest = version.partition(".")
    return int(rest.partition(".")[0]) if first == "1" and rest else int(first)  # 1.8.0 was Java 8
