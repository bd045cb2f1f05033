"""The `kibana` section of tocsin.yml: its structure, and what links are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from engine.config.faults import checked
from engine.dsl.codes import Code
from engine.dsl.schema import Strict, Text
from engine.model.links import Kibana


def _parsed(version: str) -> tuple[int, int]:
    """Return major and minor of `8.15` or `8.15.3`. Raises ValueError."""
    major, minor, *_ = (int(part) for part in version.split("."))
    return major, minor


def _base(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError


Version = Annotated[str, checked(_parsed, Code.BAD_KIBANA, "a version of Kibana", 'for example: "8.15", in quotes')]
Base = Annotated[str, checked(_base, Code.BAD_KIBANA, "an address of Kibana", "for example: https://kibana.example")]


class KibanaEntry(Strict):
    """where the logs can be looked at: url and data_view"""

    url: Base
    data_view: Text
    version: Version = "8.15"
    space: str = ""
    fields: Mapping[str, str] = {}


def kibana_of(entry: KibanaEntry | None) -> Kibana | None:
    """Return what the section stands for; None without one."""
    if entry is None:
        return None
    return Kibana(entry.url.rstrip("/"), entry.data_view, _parsed(entry.version), entry.space, entry.fields)
