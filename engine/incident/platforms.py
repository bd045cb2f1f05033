"""The commands of a fix as they work at the time of the incident and on the platform where its lines were printed. Pure.

Rules are written for a machine with systemd, and with times from now on (`journalctl -u kafka --since "1 hour ago"`). An
incident is often read later, and Docker, Kubernetes and Windows have other commands. Sources: systemd.time(7), `docker
inspect`, `docker logs`, `kubectl logs`, Get-WinEvent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.model.incidents import RenderedStep
from engine.model.records import Labels
from engine.model.words import frame

_STATE = frame("{do} (of a container its state says so: OOMKilled, or exit code 137)")
_NODE = frame("{do} (on the node of the pod)")
_EVENT_LOG = frame("{do} (on Windows in its event log)")

_AGO = re.compile(r"(\d+) ?(min|minute|hour|day)s? ago")
_UNITS = {"min": timedelta(minutes=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_BEFORE = timedelta(hours=1)  # where a command names no time
_AFTER = timedelta(minutes=10)
_KILLED = re.compile(r"(?i)killed|oom")
_STRIMZI = re2.compile(r"io\.strimzi\.|-kafka-brokers\.|/opt/kafka/custom-config/|STRIMZI_")
_WINDOWS = re2.compile(r"(?:^|[\s\"'(=\[,])[A-Za-z]:(?:\\{1,2}|/)\w[\w.-]+")
_DOCKER = re.compile(r"docker/(.+?)\.log(?:\.\d{1,3})?(?:\.gz)?(?:~\d+)?")  # connectors/files/containers
_PART = re.compile(r"broker-\d+")  # of a stream that is several brokers' logs (engine/cli/mixtures), as a service may be called
_UNIT = re.compile(r"journald/[^/:]+:(.+\.service)")
_INSPECTED = "{{.State.Status}} exit={{.State.ExitCode}} oom={{.State.OOMKilled}} {{.State.FinishedAt}} {{.State.Error}}"


class Platform(Enum):
    """What starts and ends the process whose lines prove an incident. MACHINE: systemd, or nothing is known."""

    MACHINE = "machine"
    DOCKER = "docker"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    WINDOWS = "windows"


class ProcessPlace(Struct, frozen=True):
    """The platform of a process and its name there; a name is empty where lines do not tell it or tell several."""

    platform: Platform
    container: str = ""
    pod: str = ""
    namespace: str = ""
    unit: str = ""


class LineSpan(Struct, frozen=True):
    """When the lines of an incident begin and end; None where they bear no date."""

    first: datetime | None
    last: datetime | None


def place_of(labels: Labels, sources: Sequence[str], texts: Iterable[str]) -> ProcessPlace:
    """Return the place of the process that printed the lines of an incident.

    Args:
        labels: the labels of the incident.
        sources: the names of the sources of its own lines.
        texts: these lines.
    """
    inside = {inner for _, _, inner in (source.partition("#") for source in sources) if inner}
    docker = {match[1] for source in sources if (match := _DOCKER.fullmatch(source))}
    container, pod = labels.get("container", ""), labels.get("pod", "")
    if pod or "namespace" in labels or any("/" in name for name in inside):
        pods = {name.partition("/")[0] for name in inside if "/" in name}
        named = pod or _single(pods)
        return ProcessPlace(Platform.KUBERNETES, container, named, labels.get("namespace", ""))
    if inside and (container or not all(_PART.fullmatch(name) for name in inside)):
        return ProcessPlace(Platform.COMPOSE)
    if container or docker:
        return ProcessPlace(Platform.DOCKER, container or _single(docker))
    lines = list(texts)
    if any(_WINDOWS.search(line) for line in lines):
        return ProcessPlace(Platform.WINDOWS)
    if any(_STRIMZI.search(line) for line in lines):
        return ProcessPlace(Platform.KUBERNETES)
    units = {match[1] for source in sources if (match := _UNIT.fullmatch(source))}
    return ProcessPlace(Platform.MACHINE, unit=_single(units))


def fitted(steps: Iterable[RenderedStep], place: ProcessPlace, span: LineSpan) -> tuple[RenderedStep, ...]:
    """Return the steps, in their order, with each `journalctl` as it works for the time `span` and at `place`."""
    return tuple(_fitted(step, place, span) if _is_journal(step.run) else step for step in steps)


def _is_journal(command: str) -> bool:
    """Return whether a command reads the journal and no value is missing in it."""
    return command.startswith("journalctl ") and "${" not in command


def _fitted(step: RenderedStep, place: ProcessPlace, span: LineSpan) -> RenderedStep:
    arguments = shlex.split(step.run)
    since, until = _window(arguments, span)
    if "-k" not in arguments:
        return replace(step, run=_printed(arguments, place, since, until))
    if place.platform is Platform.WINDOWS:
        return _remarked(step, _EVENT_LOG, _event_log(since, until))
    if place.platform is Platform.MACHINE or not _KILLED.search(step.run):
        journal = _journal(arguments, since, until)
        return _remarked(step, _NODE, journal) if place.platform is Platform.KUBERNETES else replace(step, run=journal)
    return _remarked(step, _STATE, _state(place))


def _remarked(step: RenderedStep, pattern: str, run: str) -> RenderedStep:
    return replace(step, do=pattern.format(do=step.do), run=run)


def _window(arguments: Sequence[str], span: LineSpan) -> tuple[datetime | None, datetime | None]:
    """Return since and until when to look: as long before the incident as the command looks back from now. None, None for an
    incident without dates."""
    if span.first is None:
        return None, None
    ago = next((match for argument in arguments if (match := _AGO.fullmatch(argument))), None)
    before = int(ago[1]) * _UNITS[ago[2]] if ago else _BEFORE
    return span.first.astimezone(UTC) - before, (span.last or span.first).astimezone(UTC) + _AFTER


def _journal(arguments: Sequence[str], since: datetime | None, until: datetime | None) -> str:
    """Return a `journalctl` command for a time; unchanged without one."""
    if since is None or until is None:
        return shlex.join(arguments)
    kept = list(arguments)
    if "--since" in kept:
        at = kept.index("--since")
        kept[at : at + 2] = []
    else:
        at = len(kept)
    kept[at:at] = ["--since", f"{since:%Y-%m-%d %H:%M} UTC", "--until", f"{until:%Y-%m-%d %H:%M} UTC"]
    return shlex.join(kept)


def _printed(arguments: Sequence[str], place: ProcessPlace, since: datetime | None, until: datetime | None) -> str:
    """Return the command that shows what a process printed; empty where the platform has none."""
    times = [] if since is None or until is None else ["--since", _instant(since), "--until", _instant(until)]
    match place.platform:
        case Platform.MACHINE:
            return _journal([place.unit if place.unit and text == "kafka" else text for text in arguments], since, until)
        case Platform.COMPOSE:
            return shlex.join(["docker", "compose", "logs", "--timestamps", *times])
        case Platform.DOCKER if place.container:
            return shlex.join(["docker", "logs", "--timestamps", *times, place.container])
        case Platform.KUBERNETES if place.pod:
            since_time = [] if since is None else [f"--since-time={_instant(since)}"]
            inner = ["-c", place.container] if place.container else []
            return shlex.join(["kubectl", *_in(place), "logs", place.pod, *inner, "--timestamps", *since_time])
    return _state(place)


def _state(place: ProcessPlace) -> str:
    """Return the command that shows how the process of a container ended; empty where the platform has none."""
    match place.platform:
        case Platform.COMPOSE:
            return "docker compose ps -a"
        case Platform.DOCKER if place.container:
            return shlex.join(["docker", "inspect", "--format", _INSPECTED, place.container])
        case Platform.DOCKER:
            return "docker ps -a"
        case Platform.KUBERNETES if place.pod:
            return shlex.join(["kubectl", *_in(place), "describe", "pod", place.pod])
        case Platform.KUBERNETES:
            return shlex.join(["kubectl", "get", "pods", *(_in(place) or ["-A"]), "-o", "wide"])
    return ""


def _event_log(since: datetime | None, until: datetime | None) -> str:
    """Return the command of PowerShell that shows errors and warnings of the system."""
    times = "" if since is None or until is None else f"; StartTime='{_instant(since)}'; EndTime='{_instant(until)}'"
    return f"Get-WinEvent -FilterHashtable @{{LogName='System'; Level=1,2,3{times}}}"


def _in(place: ProcessPlace) -> list[str]:
    return ["-n", place.namespace] if place.namespace else []


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _single(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""
