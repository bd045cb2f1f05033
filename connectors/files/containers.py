"""Labels of containers' logs, from the files that container runtimes keep beside them. Asks no daemon.

Docker keeps `<root>/<id>/<id>-json.log` with the container's description in `config.v2.json` beside it (moby, daemon/container:
`Name`, `Config.Image`, `Config.Labels`). The kubelet keeps `<root>/<namespace>_<pod>_<uid>/<container>/<restarts>.log`
(kubernetes, pkg/kubelet/kuberuntime: BuildPodLogsDirectory), and links to them from `/var/log/containers`, as
`<pod>_<namespace>_<container>-<id>.log` (legacyLogSymlink).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import msgspec
from msgspec import Struct, field

from connectors.files.opening import refused
from engine.errors import SourceError
from engine.model.patterns import fits
from engine.model.records import NO_LABELS, Labels

DOCKER_ROOT = "/var/lib/docker"
POD_LOGS = "/var/log/pods"
DESCRIPTION = "config.v2.json"
SHORT_ID = 12  # characters of a container's id that `docker ps` shows

Selection = Mapping[str, Sequence[str]]  # by label, patterns (engine/model/patterns)

_ID = re.compile(r"[0-9a-f]{64}")
_DOCKER_LOG = re.compile(r"([0-9a-f]{64})-json\.log(?:\.\d{1,3})?(?:\.gz)?")
_POD = re.compile(r"(?P<namespace>[a-z0-9-]{1,63})_(?P<pod>[a-z0-9.-]{1,253})_(?P<uid>[0-9a-f-]{32,36})")
_NAME = re.compile(r"[a-z0-9-]{1,63}")
_POD_LOG = re.compile(r"\d{1,10}\.log(?:\.\d{8}-\d{6}(?:\.gz)?)?")
_LINK = re.compile(
    r"(?P<pod>[a-z0-9.-]{1,253})_(?P<namespace>[a-z0-9-]{1,63})_(?P<container>[a-z0-9-]{1,63})-[0-9a-f]{64}\.log"
)
_OF_DOCKER = {  # labels that other programs give a container: Compose, and the kubelet where Docker runs the pods
    "com.docker.compose.service": "compose_service",
    "com.docker.compose.project": "compose_project",
    "io.kubernetes.container.name": "container",
    "io.kubernetes.pod.name": "pod",
    "io.kubernetes.pod.namespace": "namespace",
}


class _ContainerConfig(Struct, frozen=True):
    image: str = field(name="Image", default="")
    labels: dict[str, str] | None = field(name="Labels", default=None)


class _Description(Struct, frozen=True):
    """The parts of a `config.v2.json` that become labels."""

    name: str = field(name="Name", default="")
    config: _ContainerConfig | None = field(name="Config", default=None)


def container_labels(path: str) -> Labels:
    """Return the labels of the container that `path` is a log of; no labels for any other path.

    Of Docker: `container` (the short id where its description cannot be read), `image`, `compose_service` and
    `compose_project`; of the kubelet: `namespace`, `pod` and `container`.
    """
    try:
        return described(path)
    except SourceError:
        return {"container": _docker_id(path)[:SHORT_ID]}


def container_source(path: str) -> str:
    """Return the source name of a log of Docker: `docker/<container>.log` and the suffix that rotation gave the file. Return ""
    for any other log, and when the container's description cannot be read."""
    id_ = _docker_id(path)
    name = container_labels(path)["container"] if id_ else ""
    rotated = os.path.basename(path).removeprefix(f"{id_}-json.log")  # noqa: PTH119
    return f"docker/{name}.log{rotated}" if name and name != id_[:SHORT_ID] else ""


def described(path: str) -> Labels:
    """Return the labels of `container_labels`. Raises SourceError when the description beside a log cannot be read; a missing
    description is no error."""
    if id_ := _docker_id(path):
        return _of_docker(os.path.dirname(path)) or {"container": id_[:SHORT_ID]}  # noqa: PTH120
    name = os.path.basename(path)  # noqa: PTH119  (called for every file at every look)
    if link := _LINK.fullmatch(name):
        return {label: link[label] for label in ("namespace", "pod", "container")}
    if not _POD_LOG.fullmatch(name):
        return NO_LABELS
    parts = PurePath(os.path.abspath(path)).parts  # noqa: PTH100  (links stay)
    if is_pod_folder(parts[-3:-1]) and (pod := _POD.fullmatch(parts[-3])):
        return {"namespace": pod["namespace"], "pod": pod["pod"], "container": parts[-2]}
    return NO_LABELS


def is_pod_folder(parts: Sequence[str]) -> bool:
    """Return whether a path, given as parts, ends in a folder in which the kubelet keeps the logs of a container."""
    return len(parts) >= 2 and bool(_POD.fullmatch(parts[-2]) and _NAME.fullmatch(parts[-1]))


def container_logs(folder: str, names: Sequence[str]) -> Sequence[str] | None:
    """Return the names of the logs of `folder`, which has the files `names`, if it is the folder of a container; else None.

    Raises SourceError when Docker's driver `local` writes the logs of this container, which are not text.
    """
    parts = PurePath(os.path.abspath(folder)).parts  # noqa: PTH100  (links stay)
    if is_pod_folder(parts):
        return [name for name in names if _POD_LOG.fullmatch(name)]
    if not parts or not _ID.fullmatch(parts[-1]) or DESCRIPTION not in names:
        return None
    logs = [name for name in names if (log := _DOCKER_LOG.fullmatch(name)) and log[1] == parts[-1]]
    if not logs and Path(folder, "local-logs").is_dir():
        name = container_labels(str(Path(folder, f"{parts[-1]}-json.log")))["container"]
        raise SourceError(
            f"{folder}: container {name} logs by Docker's driver `local`, which writes no text; set `log-driver` to json-file "
            f"or journald for it, or pipe it: docker logs {name} 2>&1 | tocsin scan -"
        )
    return logs


def is_selected(labels: Labels, selection: Selection) -> bool:
    """Return whether every label of `selection` fits its patterns (see engine/model/patterns)."""
    return all(fits([labels[name]] if name in labels else [], patterns) for name, patterns in selection.items())


def docker_roots(root: str = "", home: Path | None = None, etc: Path = Path("/etc/docker")) -> tuple[str, ...]:
    """Return the folders of Docker's containers: the one below `root`, the folder of Docker's data, if it is given; else those
    that exist of the system's Docker and of this user's rootless Docker, or the first of these when none exists.

    The `data-root` of a daemon's `daemon.json` is the folder of its data.
    """
    if root:
        below = os.path.join(root, "containers")  # noqa: PTH118
        return (below if os.path.isdir(below) else root,)  # noqa: PTH112
    home = Path.home() if home is None else home
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    daemons = ((etc, DOCKER_ROOT), (config / "docker", str(data / "docker")))
    roots = [str(Path(_data_root(folder / "daemon.json") or usual, "containers")) for folder, usual in daemons]
    return tuple(root for root in roots if os.path.lexists(root)) or (roots[0],)


def _docker_id(path: str) -> str:
    """Return the container id of a log that Docker writes; "" for any other path."""
    log = _DOCKER_LOG.fullmatch(os.path.basename(path))  # noqa: PTH119  (called for every file at every look)
    return log[1] if log and os.path.basename(os.path.dirname(os.path.abspath(path))) == log[1] else ""  # noqa: PTH100, PTH119, PTH120


def _of_docker(folder: str) -> Labels:
    path = os.path.join(folder, DESCRIPTION)  # noqa: PTH118
    try:
        status = os.stat(path)  # noqa: PTH116
        return _docker_labels(path, status.st_ino, status.st_mtime_ns, status.st_size)
    except FileNotFoundError:
        return NO_LABELS
    except OSError as error:
        raise refused(path, error) from error


@lru_cache(maxsize=4096)
def _docker_labels(path: str, inode: int, changed_ns: int, size: int) -> Labels:
    """Return the labels in the description at `path`, of which the other arguments are the version. Raises OSError and
    SourceError."""
    try:
        description = msgspec.json.decode(Path(path).read_bytes(), type=_Description)
    except msgspec.DecodeError as error:
        raise SourceError(f"{path}: is no description of a container ({error})") from error
    config = description.config or _ContainerConfig()
    labels = {name: value for key, name in _OF_DOCKER.items() if (value := (config.labels or {}).get(key))}
    own = {"container": description.name.lstrip("/"), "image": config.image}
    return {**{name: value for name, value in own.items() if value}, **labels}


def _data_root(path: Path) -> str:
    settings: Any = None
    with suppress(OSError, ValueError, RecursionError):
        settings = json.loads(path.read_bytes())
    root = settings.get("data-root") if isinstance(settings, dict) else None
    return root if isinstance(root, str) else ""
