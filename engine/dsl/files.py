"""Find and read rule files. Folders named `components` and `formats` hold those, files named `_terms.yml` shared terms; every
other YAML file is a rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

import engine

COMPONENTS = "components"
FORMATS = "formats"
TERMS = "terms"
SUFFIXES = (".yml", ".yaml")
TERM_FILES = ("_terms.yml", "_terms.yaml")
NO_FILE = "there is no rule file at or under it (looked for: *.yml and *.yaml, but hidden ones and those that begin with _)"


class RuleSource(Struct, frozen=True):
    """One file as read: `kind` is rule, component, format or terms; `data` is None when it could not be read, as `why` says."""

    path: Path
    kind: str
    data: bytes | None
    why: str = ""


def collect(paths: Sequence[Path]) -> tuple[RuleSource, ...]:
    """Return every YAML file at or under `paths`, in order of path, each once; hidden ones and `_*` but terms are not. A path
    that holds none stands for a file that cannot be read."""
    found: dict[Path, RuleSource] = {}
    for path in paths:
        if not path.exists():
            found.setdefault(path, RuleSource(path, "rule", None, "there is no such file or folder"))
            continue
        files = _under(path)
        for file in files:
            found.setdefault(file.resolve(), _source(file))
        if not files:
            found.setdefault(path, RuleSource(path, "rule", None, NO_FILE))
    return tuple(found.values())


def fingerprint(sources: Iterable[RuleSource]) -> str:
    """Return a sha256 over names and contents of `sources`, the engine's version and its own source text.

    The source text counts because an installation that is edited in place changes without a new version.
    """
    digest = hashlib.sha256(engine.__version__.encode())
    for source in sorted(sources, key=lambda each: str(each.path)):
        digest.update(f"\0{source.path}\0{source.kind}\0".encode())
        digest.update(hashlib.sha256(source.data or b"").digest())
    for folder in (Path(__file__).parent, Path(engine.__file__).parent / "model"):
        for module in sorted(folder.glob("*.py")):
            digest.update(module.read_bytes())
    return digest.hexdigest()


def stamps(paths: Sequence[Path]) -> Mapping[Path, tuple[int, int]]:
    """Return when each file that `collect` would read was changed, in ns, and its size; without those that are gone by then."""
    found: dict[Path, tuple[int, int]] = {}
    for file in (file for path in paths for file in _under(path)):
        with suppress(OSError):
            about = file.stat()
            found[file] = (about.st_mtime_ns, about.st_size)
    return found


def _under(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix in SUFFIXES
        and file.is_file()
        and not any(p.startswith((".", "_")) and p not in TERM_FILES for p in file.relative_to(path).parts)
    ]


def _source(path: Path) -> RuleSource:
    kind = TERMS if path.name in TERM_FILES else {COMPONENTS: "component", FORMATS: "format"}.get(path.parent.name, "rule")
    try:
        return RuleSource(path, kind, path.read_bytes())
    except OSError as error:
        return RuleSource(path, kind, None, error.strerror or "cannot be read")
