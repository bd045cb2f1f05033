"""Lists the files behind the names that a user gives: paths, globs, folders, standard input."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path

from msgspec import Struct

from connectors.files.containers import Selection, container_labels, container_logs, described, is_selected
from connectors.files.opening import STDIN, irregular, refused
from engine.errors import SourceDenied, SourceError, SourceMissing

NOT_LOGS = frozenset((".md", ".yml", ".yaml"))  # skipped inside directories, read when named
SKIPPED = "Markdown, YAML and hidden files are read only when they are named"
FENCE = re.compile(rb"^ {0,3}(?:```|~~~)", re.MULTILINE)
_MAGIC = re.compile(r"[*?\[]")


class FileListing(Struct, frozen=True):
    """The files behind the names that a user gave, in order and without duplicates, and an error for every part that cannot be
    read."""

    files: tuple[str, ...]
    errors: tuple[SourceError, ...] = ()


def find(wanted: Iterable[str], excluded: Sequence[str] = (), *, posts: bool = False) -> FileListing:
    """Return the files that `wanted` names: paths, globs (`**` too), directories (recursive, sorted), `-`.

    Inside directories, hidden files, files with a suffix of NOT_LOGS, and files other than logs in the folder of a container
    are left out. A pipe or device that a glob or directory contains is an error; a path that is named itself is returned,
    whatever it is. With `posts`, Markdown with fences is read in a directory that has no log. The paths `excluded` (absolute),
    files below them, and SQLite's files beside them (`-wal`) are left out.
    """
    files: dict[str, None] = {}
    errors: list[SourceError] = []
    is_own = _Own(excluded)
    for name in wanted:
        try:
            _expand(name, is_own, files, errors, posts)
        except SourceError as error:
            errors.append(error)
    return FileListing(tuple(files), tuple(errors))


def chosen(listing: FileListing, selection: Selection) -> FileListing:
    """Return `listing` without the files that `selection` does not select, and with an error for each unreadable description of
    a container. Without a selection only the container's name is missing then, and the error is no SourceDenied."""
    files: list[str] = []
    errors = list(listing.errors)
    for path in listing.files:
        try:
            labels = described(path)
        except SourceError as error:
            labels = container_labels(path)
            errors.append(error if selection else SourceError(f"{error}; its container is named by its id"))
        if is_selected(labels, selection):
            files.append(path)
    return FileListing(tuple(files), tuple(errors))


def denied_together(errors: Mapping[str, SourceError], wanted: Iterable[str]) -> Mapping[str, SourceError]:
    """Return `errors`, by name, with the denied files below one of `wanted` (folders, globs) as one error of its name."""
    others, denied = dict[str, SourceError](), dict[str, dict[str, SourceError]]()
    roots = [(root, root.rstrip("/") + "/" if not has_magic(root) else _MAGIC.split(root)[0]) for root in wanted]
    for name, error in errors.items():
        root = next((root for root, start in roots if name.startswith(start)), None)
        if root is None or not isinstance(error, SourceDenied):
            others[name] = error
        else:
            denied.setdefault(root, {})[name] = error
    for root, group in denied.items():
        first = next(iter(group.values()))
        if len(group) == 1:
            others |= group
        else:
            others[root] = SourceDenied(f"{root}: {len(group)} files or folders may not be read, the first is {first}")
    return others


class _Own:
    """Returns whether a path is excluded. Links in the path of its folder are resolved, so any name of the folder counts."""

    def __init__(self, excluded: Sequence[str]) -> None:
        self._paths = tuple(os.path.realpath(path) for path in excluded)
        self._folders: dict[str, str] = {}  # resolved once, since every file is checked at every look

    def __call__(self, path: str) -> bool:
        if not self._paths:
            return False
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or ".")
        real = os.path.join(self._folders[folder], name)  # noqa: PTH118
        return any(real == own or real.startswith((own + os.sep, own + "-")) for own in self._paths)


def _expand(name: str, is_own: _Own, files: dict[str, None], errors: list[SourceError], posts: bool) -> None:
    if name == STDIN:
        files[name] = None
    elif has_magic(name) and not os.path.exists(name):  # noqa: PTH110  (a Path raises where it may not look)
        matched = [path for path in sorted(glob(name, recursive=True)) if not os.path.isdir(path)]  # noqa: PTH112, PTH207
        if not matched:
            raise SourceMissing(f"{name}: no file matches")
        _add([path for path in matched if not is_own(path)], files, errors)
    elif os.path.isdir(name):  # noqa: PTH112
        _add(_files_below(name, is_own, errors, posts), files, errors)
    elif is_own(_present(name)):
        raise SourceError(f"{name}: tocsin writes this file itself; it is not read as a log")
    else:
        files[name] = None


def _add(paths: Iterable[str], files: dict[str, None], errors: list[SourceError]) -> None:
    for path in paths:
        if (error := _irregular(path)) is None:
            files[path] = None
        else:
            errors.append(error)


def _irregular(path: str) -> SourceError | None:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  (as typed)
    except OSError:
        return None  # a dangling link, or gone: opening it will report that
    return None if stat.S_ISREG(mode) else irregular(path, mode)


def _present(name: str) -> str:
    try:
        os.stat(name)  # noqa: PTH116  (a Path would drop a leading ./, and with it the name the user gave)
    except OSError as error:
        raise refused(name, error) from error
    return name


def _files_below(folder: str, is_own: _Own, errors: list[SourceError], posts: bool) -> list[str]:
    """Return the logs in a folder and below it, or its `posts` if it has none. A folder that cannot be listed is added to
    `errors`; the others are listed."""
    paths: list[str] = []
    markdown: list[str] = []
    before, skipped = len(errors), 0

    def refuse(error: OSError) -> None:
        errors.append(refused(str(error.filename), error))

    for parent, folders, names in os.walk(folder, onerror=refuse):
        try:
            logs = container_logs(parent, names)
        except SourceError as error:
            errors.append(error)
            logs = []
        if logs is not None:
            folders[:], names = [], [*logs]  # noqa: PLW2901  (the other files describe the container)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not is_own(str(Path(parent, name))))
        markdown += [str(Path(parent, name)) for name in sorted(names) if posts and name.endswith(".md") and name[0] != "."]
        skipped += sum(not is_log(name) for name in names)
        paths += [path for name in sorted(names) if is_log(name) and not is_own(path := str(Path(parent, name)))]
    paths = paths or [path for path in markdown if _has_fence(path)]
    if not paths and len(errors) == before:
        why = f" ({skipped} {'file was' if skipped == 1 else 'files were'} skipped: {SKIPPED})" if skipped else ""
        raise SourceMissing(f"{folder}: holds no log files{why}")
    return paths


def _has_fence(path: str) -> bool:
    try:
        return FENCE.search(Path(path).read_bytes()) is not None
    except OSError:  # it is skipped, and counted as such
        return False


def is_log(name: str) -> bool:
    """Return whether a file with this name is read when nobody names it itself."""
    return not name.startswith(".") and Path(name).suffix not in NOT_LOGS
