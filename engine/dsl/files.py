"""Find and read rule files.

A file in a folder `components` is a component, one in a folder `formats` a format, one in a folder `dialects` a dialect, one in
a folder `terms` holds the terms of a library, a file `_terms.yml` those of no library; every other YAML file is a rule.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

import engine

COMPONENTS = "components"
FORMATS = "formats"
DIALECTS = "dialects"
TERMS = "terms"
SUFFIXES = (".yml", ".yaml")
TERM_FILES = ("_terms.yml", "_terms.yaml")
_KINDS = {COMPONENTS: "component", FORMATS: "format", DIALECTS: "dialect", TERMS: TERMS}  # by the name of the folder
NO_FILE = "there is no rule file at or under it (looked for: *.yml and *.yaml, but hidden ones and those that begin with _)"


class RuleSource(Struct, frozen=True):
    """One file as read. `kind` is rule, component, format, dialect or terms; `data` is None if it cannot be read, for `why`."""

    path: Path
    kind: str
    data: bytes | None
    why: str = ""


def collect(paths: Sequence[Path]) -> tuple[RuleSource, ...]:
    """Read every YAML file at or under `paths`: each once, those under one path in order of path.

    Leaves out hidden files and those that begin with `_`, other than terms. A path without a rule file yields one source
    without data, so that it is reported.
    """
    sources: dict[Path, RuleSource] = {}
    for path in paths:
        if not path.exists():
            sources.setdefault(path, RuleSource(path, "rule", None, "there is no such file or folder"))
            continue
        files = _under(path)
        folders = {folder: folder.resolve() for folder in {file.parent for file in files}}
        for file in files:
            same = file.resolve() if file.is_symlink() else folders[file.parent] / file.name
            sources.setdefault(same, _source(file))
        if not files:
            sources.setdefault(path, RuleSource(path, "rule", None, NO_FILE))
    return tuple(sources.values())


def fingerprint(sources: Iterable[RuleSource]) -> str:
    """Return a sha256 over the names and contents of `sources`, the engine's version and the source text of the compiler.

    The source text counts because an installation that is edited in place changes without a new version.
    """
    digest = hashlib.sha256(engine.__version__.encode())
    for source in sorted(sources, key=lambda source: str(source.path)):
        digest.update(f"\0{source.path}\0{source.kind}\0".encode())
        digest.update(hashlib.sha256(source.data or b"").digest())
    for folder in (Path(__file__).parent, Path(engine.__file__).parent / "model"):
        for file in sorted((*folder.glob("*.py"), *folder.glob("*.json"))):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def stamps(paths: Sequence[Path]) -> Mapping[Path, tuple[int, int]]:
    """Return (modification time in ns, size in bytes) by path of the files that `collect` would read; deleted ones are left
    out."""
    stamps_by_path: dict[Path, tuple[int, int]] = {}
    for file in (file for path in paths for file in _under(path)):
        with suppress(OSError):
            status = file.stat()
            stamps_by_path[file] = (status.st_mtime_ns, status.st_size)
    return stamps_by_path


def _under(path: Path) -> list[Path]:
    """Return the rule files at or under a path, in order of path. Links to folders are not followed."""
    if path.is_file():
        return [path]
    files: list[Path] = []
    for folder, names, file_names in os.walk(path):
        names[:] = [name for name in names if not name.startswith((".", "_"))]
        files += [Path(folder, name) for name in file_names if _is_rule_file(name)]
    return sorted(file for file in files if file.is_file())


def _is_rule_file(name: str) -> bool:
    return name.endswith(SUFFIXES) and (name in TERM_FILES or not name.startswith((".", "_")))


def _source(path: Path) -> RuleSource:
    kind = TERMS if path.name in TERM_FILES else _KINDS.get(path.parent.name, "rule")
    try:
        return RuleSource(path, kind, path.read_bytes())
    except OSError as error:
        return RuleSource(path, kind, None, error.strerror or "cannot be read")
