"""The jars of a Kafka broker: by Maven where it is, else by the Ivy that comes inside pyspark; kept in the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

Artifact = tuple[str, str, str]  # group, name, version

KAFKA: Artifact = ("org.apache.kafka", "kafka_2.13", "4.3.1")
LOGGING: Artifact = (
    "org.apache.logging.log4j",
    "log4j-slf4j-impl",
    "2.25.4",
)  # Kafka's own pom brings no binding; same log4j as its
WITHIN_S = 600

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>broker</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{more}</dependency>"
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
_ALONE = f"<exclusions>{_EXCLUSION.format('*', '*')}</exclusions>"


class NoJars(RuntimeError):
    """The jars cannot be had; says why."""


def kafka_jars() -> Path:
    """Return the folder with the jars of a broker, fetching them the first time. Raises NoJars."""
    return jars(f"kafka-{KAFKA[2]}", [KAFKA], [LOGGING])


def all_jars(version: str = KAFKA[2]) -> Path:
    """Return the folder with the jars of a broker, the console clients and a Connect worker for files. Raises NoJars."""
    names = (KAFKA[1], "kafka-tools", "connect-runtime", "connect-json", "connect-file")
    binding = () if version.startswith("3.") else [LOGGING]  # Kafka 3 brings its own
    return jars(f"kafka-tools-{version}", [(KAFKA[0], name, version) for name in names], binding)


def jars(
    name: str, artifacts: Sequence[Artifact], alone: Sequence[Artifact] = (), without: Sequence[tuple[str, str]] = ()
) -> Path:
    """Return the folder `name` of the cache with `artifacts` and all they need, and those of `alone` without what they need.

    What is there is not fetched again. Raises NoJars.

    Args:
        without: group and name of what `artifacts` need and nobody has; `*` for all of a group. Takes Maven.
    """
    cache = kept_servers()
    folder = cache / name
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            if shutil.which("mvn"):
                _by_maven(Path(fresh), artifacts, alone, without)
            elif without:
                raise NoJars(f"there is no Maven, which {name} takes")
            else:
                _by_ivy(Path(fresh), artifacts, alone)
            if not folder.exists():
                (Path(fresh) / "libs").rename(folder)  # all of them or none
    return folder


def kept_servers() -> Path:
    """Return the folder of the servers that were fetched once, in the cache of the user: XDG_CACHE_HOME, in tests, is a folder
    of the checkout (tests/conftest.py)."""
    return Path.home() / ".cache" / "tocsin" / "servers"


def _by_maven(
    folder: Path, artifacts: Sequence[Artifact], alone: Sequence[Artifact], without: Sequence[tuple[str, str]]
) -> None:
    excluded = "".join(_EXCLUSION.format(*names) for names in without)
    more = f"<exclusions>{excluded}</exclusions>" if excluded else ""
    wanted = [_DEPENDENCY.format(*artifact, more=more) for artifact in artifacts]
    wanted += [_DEPENDENCY.format(*artifact, more=_ALONE) for artifact in alone]
    (folder / "pom.xml").write_text(_POM.format(dependencies="".join(wanted)))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'libs'}"]
    _run(["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), *goal])


def _by_ivy(folder: Path, artifacts: Sequence[Artifact], alone: Sequence[Artifact]) -> None:
    found = find_spec("pyspark")
    ivy = next(Path(found.origin).parent.glob("jars/ivy-*.jar"), None) if found and found.origin else None
    if ivy is None or shutil.which("java") is None:
        raise NoJars("there is neither Maven, nor Java with the Ivy of pyspark")
    for artifact in (*artifacts, *alone):
        more = ["-notransitive"] if artifact in alone else []
        retrieve = ["-confs", "default", "-retrieve", f"{folder}/libs/[artifact]-[revision](-[classifier]).[ext]"]
        _run(["java", "-jar", str(ivy), "-warn", "-cache", f"{folder}/ivy", "-dependency", *artifact, *retrieve, *more])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJars(f"{command[0]}: {error}") from error
    if done.returncode:
        raise NoJars(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-1000:]}")
