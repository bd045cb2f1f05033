"""Start and stop Spark: check what it needs, keep the start quick and the terminal quiet.

In a local run Spark listens on ports of this machine that any of its users can reach. Every peer there has to prove that it
knows a secret of the run. On a cluster only the driver is started here; a process that spark-submit started uses the JVM of
that. No secret is on a command line.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.errors import RuntimeMissing, TocsinError
from engine.ports import Say
from engine.rights import make_file, make_folder
from engine.spark.run_folder import RunFolder, remove_stale
from engine.spark.spark_settings import Resources, SparkSettings, spark_settings, without_user

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17  # the oldest that Spark 4 runs on
PACKAGES = (
    "pyspark",
    "google.protobuf",
    "pyarrow",
    "sqlalchemy",
)  # protobuf: without it, stateful Python workers die without a message
ENDS_WITHIN_S = 30.0
# With pinned threads the JVM drops the token for its callbacks, so that Python could not authenticate them (py4j 0.10.9.9:
# PythonClient.copyWith does not copy authToken; CallbackClient.copyWith does).
_PINNED = "PYSPARK_PIN_THREAD"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # in the environment of a process that spark-submit started


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
    version = java_version(java)
    if version is None or version < JAVA:
        raise RuntimeMissing(f"the Spark job needs Java {JAVA} or newer; {java} is {version or 'not Java'}. {_HINT}")


_HINT = "`tocsin scan` needs no Java"


def java_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the java command that Spark would start: that of JAVA_HOME, else the first on the PATH; None without one."""
    if home := environment.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        return str(java) if java.is_file() else None
    return shutil.which("java", path=environment.get("PATH"))


def java_version(java: str) -> int | None:
    """Return the major version of a java command, from the release file of its installation or else by running it; None when it
    is not Java."""
    release = Path(java).resolve().parent.parent / "release"
    with suppress(OSError):
        if (version := re.search(r'^JAVA_VERSION="([\d.]+)', release.read_text(encoding="utf-8"), re.MULTILINE)) is not None:
            return _major(version[1])
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "([\d.]+)', output)
    return _major(version[1]) if version else None


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether spark-submit started this process: its JVM runs already, and writes to the terminal."""
    return _SUBMITTED in environment


def start(resources: Resources, say: Say = lambda sentence: None) -> SparkSession:
    """Start Spark for this process and return its session. The caller keeps its handler of Ctrl-C, and the folders of killed
    runs are deleted.

    Only one session may exist in a process, since pyspark keeps its JVM in class attributes. `say` takes sentences about the
    settings. Raises RuntimeMissing, UsageError for a secret that cannot be read, and TocsinError when the temporary folder
    cannot be written to or the master cannot be reached.
    """
    check_runtime()
    if not is_submitted():  # the JVM of spark-submit has decided already
        os.environ[_PINNED] = "false"
    folder = _run_folder()
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        settings = spark_settings(resources, folder.path, _submitted_settings() if is_submitted() else None)
        for sentence in settings.sentences:
            say(sentence)
        spark = _session(settings, resources.log, folder.path)
    except BaseException:
        folder.remove()
        raise
    finally:
        if threading.current_thread() is threading.main_thread():  # in other threads SparkContext sets no handler
            signal.signal(signal.SIGINT, interrupt)
    _folders[id(spark)] = folder
    return spark


def _session(settings: SparkSettings, log: Path | None, folder: Path) -> SparkSession:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  (slow to import, absent without the extra)
    from pyspark.sql import SparkSession  # noqa: PLC0415

    _prepare_environment(settings)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.values.items()))
    gateway = SparkContext._gateway if is_submitted() else _gateway(conf, log, folder)
    conf.setAll(list(settings.secrets.items()))  # after the JVM has been started with the others on its command line
    try:
        return SparkSession(SparkContext(gateway=gateway, conf=conf))
    except Exception as error:
        failure = None if settings.is_local else _start_failure(without_user(settings.master), error, log)  # asks the JVM
        _end(gateway)
        if failure is None:
            raise
        raise TocsinError(failure) from error


def _start_failure(master: str, error: Exception, log: Path | None) -> str:
    """Return a sentence about a start that failed at the master of a cluster."""
    cause = getattr(error, "java_exception", None)
    why = str(error if cause is None else cause.toString()).strip().partition("\n")[0]
    seen = f" (see {log})" if log is not None and not is_submitted() else ""
    return f"Spark cannot be started at {master}: {why}; is the master there, and does it know the same secret?{seen}"


def _submitted_settings() -> Mapping[str, str]:
    """Return the settings of the JVM that spark-submit started, and connect to it."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()
    _authenticate_callbacks(SparkContext._gateway)
    return dict(SparkConf().getAll())


_folders: dict[int, RunFolder] = {}  # of the sessions of this process


def stop(spark: SparkSession) -> None:
    """Stop Spark and its JVM and delete the folder of the run. The JVM may have ended already, by a signal to the process
    group."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  (comes with pyspark)

    gateway = spark.sparkContext._gateway
    with suppress(Py4JError, OSError):
        spark.stop()
    _end(gateway)
    if (folder := _folders.pop(id(spark), None)) is not None:
        folder.remove()


def _run_folder() -> RunFolder:
    remove_stale()
    try:
        return RunFolder()
    except OSError as error:
        why = error.strerror or str(error)
        raise TocsinError(f"nothing can be written to the temporary folder: {why}; set TMPDIR to one that can be") from None


def _gateway(conf: Any, log: Path | None, folder: Path) -> Any:
    """Start the JVM and return py4j's gateway to it. The JVM authenticates its callers; with the same token Python
    authenticates the JVM when that calls back."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    with _log(log) as out, _temporary(folder):
        gateway = launch_gateway(conf, {"stdout": out, "stderr": out})
    _authenticate_callbacks(gateway)
    return gateway


def _authenticate_callbacks(gateway: Any) -> None:
    """Let Python ask the JVM for the gateway's token, unless its threads are pinned: it would not have it."""
    if os.environ.get(_PINNED, "true").lower() == "true":
        return
    gateway.callback_server_parameters.auth_token = gateway.gateway_parameters.auth_token


def _end(gateway: Any) -> None:
    """Close the gateway and wait until the JVM has cleaned up and ended; kill it after ENDS_WITHIN_S. The JVM of spark-submit
    ends after this process."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark import SparkContext  # noqa: PLC0415

    if is_submitted():
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    with suppress(OSError):
        gateway.proc.stdin.close()
    try:
        gateway.proc.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None  # the next session starts a new JVM


@contextmanager
def _temporary(folder: Path) -> Iterator[None]:
    """Make `folder` the temporary folder of this process and of the processes that are started meanwhile."""
    names = ("TMPDIR", "SPARK_LOCAL_DIRS")
    saved, saved_tempdir = {name: os.environ.get(name) for name in names}, tempfile.tempdir
    os.environ.update(dict.fromkeys(names, str(folder)))
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = saved_tempdir
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prepare_environment(settings: SparkSettings) -> None:
    """Make Python processes of Spark on this machine find this package and import nothing from the current folder, and workers
    run this interpreter, unless the workers of a cluster have another one."""
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(part for part in path if part))
    os.environ["PYTHONSAFEPATH"] = "1"
    if settings.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ["PYSPARK_PYTHON"] = (
            settings.values.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
        )
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _log(path: Path | None) -> IO[bytes]:
    if path is None:
        return Path(os.devnull).open("wb")
    make_folder(path.parent)
    make_file(path)
    return path.open("ab")


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def _major(version: str) -> int:
    first, _, rest = version.partition(".")
    return int(rest.partition(".")[0]) if first == "1" and rest else int(first)  # 1.8.0 was Java 8
