"""Logs as container runtimes lay them out on a disk: Docker's, each with a description beside it, and the kubelet's."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

_HEAD = re.compile(r"\[?(20\d\d-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")


def id_of(name: str) -> str:
    """Return the id of the container `name`: 64 hexadecimal digits, always the same."""
    return hashlib.sha256(name.encode()).hexdigest()


def docker_log(root: Path, name: str) -> Path:
    """Return the path of the log of the container `name` below `root`, the folder of the containers."""
    return root / id_of(name) / f"{id_of(name)}-json.log"


def make_docker_log(root: Path, name: str, image: str = "apache/kafka:3.9.0", labels: Mapping[str, str] | None = None) -> Path:
    """Make the folder of a container as Docker does, with what else lies in it, and return the path of its empty log."""
    log = docker_log(root, name)
    (log.parent / "mounts").mkdir(parents=True)
    description = {
        "ID": id_of(name),
        "Name": f"/{name}",
        "Image": f"sha256:{id_of(image)}",
        "Config": {"Hostname": id_of(name)[:12], "Image": image, "Env": ["PASSWORD=x"], "Labels": dict(labels or {})},
        "LogPath": str(log),
    }
    (log.parent / "config.v2.json").write_text(json.dumps(description))
    (log.parent / "hostconfig.json").write_text(json.dumps({"LogConfig": {"Type": "json-file", "Config": {}}}))
    (log.parent / "hostname").write_text("kafka\n")
    (log.parent / "hosts").write_text("127.0.0.1 localhost\n")
    log.touch()
    return log


def docker_row(line: str, at: datetime, last: bool = True) -> str:
    """Return the row that the driver json-file writes for a line, or for a part of one that is not the `last`."""
    end = "\n" if last else ""
    stamp = f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"
    return json.dumps({"log": f"{line}{end}", "stream": "stdout", "time": stamp}, separators=(",", ":"))


def pod_log(root: Path, pod: str, container: str, namespace: str = "kafka", restarts: int = 0) -> Path:
    """Return the path of the log of a container below `root`, the folder of the pods."""
    uid = id_of(f"{namespace}/{pod}")
    folder = f"{namespace}_{pod}_{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}"
    return root / folder / container / f"{restarts}.log"


def make_pod_log(root: Path, pod: str, container: str, namespace: str = "kafka", restarts: int = 0) -> Path:
    """Make the folder of a container as the kubelet does, and return the path of its empty log."""
    log = pod_log(root, pod, container, namespace, restarts)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    return log


def pod_row(line: str, at: datetime, last: bool = True) -> str:
    """Return the row of the CRI that a runtime writes for a line, or for a part of one that is not the `last`."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z stdout {'F' if last else 'P'} {line}"


def link_pod_log(links: Path, log: Path) -> Path:
    """Link to the log of a pod's container from the folder `links`, as the kubelet does; return the link."""
    namespace, pod, _ = log.parent.parent.name.split("_")
    link = links / f"{pod}_{namespace}_{log.parent.name}-{id_of(str(log))}.log"
    link.symlink_to(log)
    return link


def rotate(log: Path, number: int) -> Path:
    """Move a log away as its runtime does, and begin it anew; return the rotated file."""
    if log.name.endswith("-json.log"):
        for older in range(number, 1, -1):
            for packed in ("", ".gz"):
                earlier = log.with_name(f"{log.name}.{older - 1}{packed}")
                if earlier.exists():
                    earlier.rename(log.with_name(f"{log.name}.{older}{packed}"))
        rotated = log.with_name(f"{log.name}.1")
    else:
        rotated = log.with_name(f"{log.name}.20221005-1730{number:02}")
    log.rename(rotated)
    log.touch()
    return rotated


def dated(lines: Sequence[str], otherwise: datetime, offset: timedelta = timedelta()) -> Iterator[tuple[str, datetime]]:
    """Yield lines with the times at which a runtime took them: that of their stamp, which is `offset` ahead of UTC, or of the
    one before; of those before the first stamp that one's, and `otherwise` where there is none at all."""
    at = next(stamps(lines, offset), otherwise)
    for line in lines:
        at = next(stamps([line], offset), at)
        yield line, at


def stamps(lines: Iterable[str], offset: timedelta = timedelta()) -> Iterator[datetime]:
    """Yield the times of the lines that begin with a stamp."""
    for line in lines:
        if head := _HEAD.match(line):
            yield datetime.fromisoformat(f"{head[1]}T{head[2]}+00:00") - offset


def append(log: Path, text: str) -> None:
    """Write to a log as its runtime does: whole, at once."""
    with log.open("a") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
