"""The origin of a line: the document that holds it, in a system where documents can be looked up one by one."""

from __future__ import annotations

from urllib.parse import quote, unquote


def origin_of(system: str, *path: str) -> str:
    """Return the origin of lines: `SYSTEM:PART/PART`, each part of the path percent-encoded. For Elasticsearch the path is the
    concrete index and the `_id` of the document."""
    return f"{system}:{'/'.join(quote(part, safe='') for part in path)}"


def origin_path(origin: str, system: str) -> tuple[str, ...]:
    """Return the path of an origin in `system`; empty when it names another system, or nothing."""
    name, _, path = origin.partition(":")
    return tuple(map(unquote, path.split("/"))) if name == system and path else ()
