"""Decide the master and the settings of Spark from the configuration and from what spark-submit was given. Pure.

A setting that the configuration or spark-submit gives replaces a default. Settings that the result depends on, or that keep a
local run to its machine, cannot be replaced; whoever tries is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field

from engine.secrets import Secret, is_secret_setting, revealed

SUBMITTED_WITHOUT_MASTER = "local[*]"  # what spark-submit takes when it is given none (SparkSubmitArguments)
OWN_KEYS: Mapping[str, str] = {  # settings with a key of their own under `spark`
    "spark.master": "master",
    "spark.sql.shuffle.partitions": "partitions",
}
_LOCAL = re.compile(r"local(\[[^\]]*\])?")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Spark's default, over Hadoop's FileContext, starts a `readlink` for every file of a local checkpoint that it looks at, some
# twenty processes a batch (RawLocalFileSystem.getFileLinkStatus). Both write a temporary file and rename it.
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
_SECRET_OF_A_CLUSTER = ("spark.authenticate.secret", "spark.authenticate.secret.file", "spark.authenticate.secret.driver.file")


class Resources(Struct, frozen=True):
    """What Spark may use, and where.

    Attributes:
        cores: threads of a local run; on a cluster, executors of one core.
        partitions: the number of state partitions, which is fixed for the life of a checkpoint; None: one in a local run, on a
            cluster as many as `cores`.
        heap: the heap of the driver's JVM, as Java writes it.
        log: the file for the standard error of the JVM and the local workers; None discards it.
        master: the address of the master; None: that of spark-submit, else a local run.
        conf: further settings of Spark by name.
        checkpoint: the URL of the checkpoint; empty when it is a folder.
    """

    cores: int = 2
    partitions: int | None = None
    heap: str = "1g"
    log: Path | None = None
    master: str | None = None
    conf: Mapping[str, str | Secret] = field(default_factory=dict)
    checkpoint: str = ""


class SparkSettings(Struct, frozen=True):
    """The settings of a run.

    Attributes:
        values: settings by name, without secrets: they may be on a command line.
        secrets: those that may not, revealed.
        sentences: what the operator should know about them.
    """

    master: str
    values: Mapping[str, str]
    secrets: Mapping[str, str]
    sentences: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether everything runs on this machine."""
        return is_local(self.master)


def is_local(master: str) -> bool:
    """Return whether `master` is this machine: driver and executors are one process."""
    return _LOCAL.fullmatch(master) is not None


def spark_settings(resources: Resources, folder: Path, submitted: Mapping[str, str] | None = None) -> SparkSettings:
    """Return the settings of a run whose temporary files are in `folder`.

    Args:
        submitted: the settings of the JVM when spark-submit started this process, else None.

    Raises UsageError when a secret of the configuration cannot be read.
    """
    master, sentences = _master(resources, submitted or {})
    revealed_conf = {name: revealed(value) for name, value in resources.conf.items()}
    given = {**revealed_conf, **(submitted or {})}
    required = _required(resources, master, folder)
    secrets = {name: given[name] for name in resources.conf if is_secret_setting(name) and name not in required}
    values = {**_defaults(resources, master, given), **given, **required}
    values[_JAVA_OPTIONS] = f"{_java_options(folder, is_local(master))} {given.get(_JAVA_OPTIONS, '')}".strip()
    for name in sorted(required.keys() & given.keys() - {"spark.master"}):
        if given[name] != required[name]:
            own = f"; write `{OWN_KEYS[name]}` under `spark` instead" if name in OWN_KEYS else ""
            sentences.append(
                f"the setting {name} of Spark is {required[name]}: tocsin needs that, and yours has no effect{own}"
            )
    if not is_local(master) and values.get("spark.authenticate") != "true":
        sentences.append(
            f"whoever reaches the ports of Spark at {without_user(master)} can run code there: set spark.authenticate and"
            " spark.authenticate.secret in `spark.conf`, and the same secret at the master and its workers (docs/cluster.md)"
        )
    shown = {name: value for name, value in values.items() if name not in secrets}
    return SparkSettings(master, shown, secrets, tuple(sentences))


def without_user(master: str) -> str:
    """Return the address of a master without a user and password."""
    return re.sub(r"//[^/@]*@", "//", master)


def _master(resources: Resources, submitted: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the master, and a sentence when spark-submit and the configuration name two."""
    of_submit, of_configuration = submitted.get("spark.master"), resources.master
    if of_submit is None:
        return of_configuration or f"local[{resources.cores}]", []
    if of_configuration is None or of_submit == of_configuration:
        return of_submit, []
    if of_submit == SUBMITTED_WITHOUT_MASTER:
        return of_configuration, []
    names = without_user(of_submit), without_user(of_configuration)
    return of_submit, [f"the master is that of spark-submit, {names[0]}, and not {names[1]} of the configuration"]


def _required(resources: Resources, master: str, folder: Path) -> Mapping[str, str]:
    cores_of_cluster = 1 if is_local(master) else resources.cores
    settings = {
        "spark.master": master,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(resources.partitions or cores_of_cluster),
        "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
        "spark.sql.streaming.stateStore.encodingFormat": "avro",
    }
    if is_local(master):
        # On local[N] Spark makes the secret itself and keeps it in memory (SecurityManager.initializeAuth).
        settings |= {
            **_AUTHENTICATED,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(folder),
        }
    return settings


def _defaults(resources: Resources, master: str, given: Mapping[str, str]) -> Mapping[str, str]:
    settings = {
        "spark.app.name": "tocsin",
        "spark.driver.memory": resources.heap,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    if urlsplit(resources.checkpoint).scheme != "hdfs":  # whose FileContext renames atomically
        settings["spark.sql.streaming.checkpointFileManagerClass"] = _CHECKPOINT_FILES
    return settings if is_local(master) else settings | _cluster_defaults(resources, master, given)


def _cluster_defaults(resources: Resources, master: str, given: Mapping[str, str]) -> dict[str, str]:
    settings = {"spark.executor.cores": "1", "spark.executorEnv.PYTHONSAFEPATH": "1"}
    if master.startswith("spark:"):
        # without a bound it takes all cores, and whoever takes over from it waits for ever
        settings["spark.cores.max"] = str(resources.cores)
        return settings | (_AUTHENTICATED if any(name in given for name in _SECRET_OF_A_CLUSTER) else {})
    # Python needs half a gigabyte beside the JVM; YARN and Kubernetes make the secret themselves
    return {
        **settings,
        **_AUTHENTICATED,
        "spark.executor.instances": str(resources.cores),
        "spark.executor.memoryOverhead": "1g",
    }


def _java_options(folder: Path, local: bool) -> str:
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    quoted = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    # without -UsePerfData Java leaves a file in /tmp when it is killed, wherever its temporary folder is
    own = f'-Dlog4j2.configurationFile={log4j} -Djava.io.tmpdir="{quoted}" -XX:-UsePerfData'
    return f"{own} -XX:+UseSerialGC -XX:TieredStopAtLevel=1" if local else own
