"""The daemons of Hadoop, of the version inside pyspark: their jars, their settings, and what they say of themselves."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.servers.jars import jars

_DAEMONS = ("org.apache.hadoop", "hadoop-minicluster", "3.5.0")
_SITE = "<configuration>{}</configuration>"
_PROPERTY = "<property><name>{}</name><value>{}</value></property>"


def hadoop_jars() -> Path:
    """Return the folder with the jars of all daemons, fetching them the first time. Raises NoJars."""
    return jars(f"hadoop-minicluster-{_DAEMONS[2]}", [_DAEMONS])


def write_settings(folder: Path, name: str, settings: Mapping[str, str]) -> None:
    """Write a file of settings, such as `core-site.xml`."""
    (folder / name).write_text(_SITE.format("".join(_PROPERTY.format(*each) for each in settings.items())))


def java(folder: Path, libs: Path) -> list[str]:
    """Return the command that runs a class of Hadoop with the settings in `folder`."""
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{libs}/*"]


def daemon(folder: Path, libs: Path, kind: str) -> subprocess.Popen[bytes]:
    """Start the daemon of the class `kind`; what it prints is in a file of `folder`."""
    with (folder / f"{kind.rpartition('.')[2]}.log").open("wb") as log:
        return subprocess.Popen([*java(folder, libs), kind], stdout=log, stderr=log, cwd=folder)


def metric(port: int, service: str, name: str, attribute: str) -> int:
    """Return a number that the daemon with its pages at `port` says of itself; 0 while it does not answer."""
    url = f"http://127.0.0.1:{port}/jmx?qry=Hadoop:service={service},name={name}"
    with suppress(OSError, LookupError), urllib.request.urlopen(url, timeout=5) as answer:
        return int(json.load(answer)["beans"][0][attribute])
    return 0
