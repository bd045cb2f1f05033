"""The `kibana` section of tocsin.yml: schema and conversion to the target of links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from engine.config.faults import validated_by
from engine.dsl.codes import Code
from engine.dsl.schema import Strict, Text
from engine.model.links import Kibana


def _parse_version(version: str) -> tuple[int, int]:
    """Return (major, minor) of `8.15` or `8.15.3`. Raises ValueError for other text."""
    major, minor, *_ = (int(part) for part in version.split("."))
    return major, minor


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError


Version = Annotated[str, validated_by(_parse_version, Code.BAD_KIBANA, "a version of Kibana", 'for example: "8.15", in quotes')]
KibanaUrl = Annotated[
    str, validated_by(_check_url, Code.BAD_KIBANA, "an address of Kibana", "for example: https://kibana.example")
]


class KibanaEntry(Strict):
    """a Kibana that has the logs: url and data_view"""

    url: KibanaUrl
    data_view: Text
    version: Version = "8.15"
    space: str = ""
    fields: Mapping[str, str] = {}


def kibana_of(entry: KibanaEntry | None) -> Kibana | None:
    """Return the Kibana of the section; None when there is no section."""
    if entry is None:
        return None
    return Kibana(entry.url.rstrip("/"), entry.data_view, _parse_version(entry.version), entry.space, entry.fields)
