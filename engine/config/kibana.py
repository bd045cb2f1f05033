"""The `kibana` section of tocsin.yml: schema and conversion to the target of links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from engine.config.faults import finding_error, validated_by
from engine.dsl.codes import Code
from engine.dsl.schema import Strict, Text
from engine.model.kibana import AD_HOC_SINCE, MajorMinor
from engine.model.links import AUTO, DISCOVER, ESQL, LOCATOR, OPENSEARCH, STYLES, Kibana

VERSION = "8.15"


def _parse_version(version: str) -> MajorMinor:
    """Return (major, minor) of `8.15` or `8.15.3`. Raises ValueError for other text."""
    major, minor, *_ = (int(part) for part in version.split("."))
    return major, minor


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError


def _check_style(value: str) -> None:
    if value not in STYLES:
        raise ValueError(value)


KibanaVersion = Annotated[
    str, validated_by(_parse_version, Code.BAD_KIBANA, "a version of Kibana", 'for example: "8.15", in quotes')
]
KibanaUrl = Annotated[
    str, validated_by(_check_url, Code.BAD_KIBANA, "an address of Kibana", "for example: https://kibana.example")
]
LinkStyle = Annotated[str, validated_by(_check_style, Code.BAD_KIBANA, "a form of links", f"one of: {', '.join(STYLES)}")]


class KibanaEntry(Strict):
    """a Kibana that has the logs: url, and data_view or indices"""

    url: KibanaUrl
    data_view: Text | None = None
    indices: list[Text] = Field(default=[])
    version: KibanaVersion = VERSION
    style: LinkStyle = AUTO
    space: str = ""
    tenant: str = ""
    saved_search: Text | None = None
    time_field: Text = "@timestamp"
    columns: list[Text] = Field(default=["message"])
    fields: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _can_be_linked(self) -> KibanaEntry:
        version, style = _parse_version(self.version), self.style
        if self.data_view is None and (
            style in (DISCOVER, OPENSEARCH) or (style in (AUTO, LOCATOR) and version < AD_HOC_SINCE)
        ):
            raise finding_error(Code.BAD_KIBANA, "links of this form need `data_view`", "the id of a saved data view")
        if self.saved_search is not None and (style in (ESQL, OPENSEARCH) or version < (7, 9)):
            raise finding_error(Code.BAD_KIBANA, "links of this form cannot open a saved search", "leave saved_search out")
        if style == ESQL and version < (8, 15):
            raise finding_error(Code.BAD_KIBANA, "there is no ES|QL before Kibana 8.15", "leave style out")
        if style == LOCATOR and version < (7, 14):
            raise finding_error(Code.BAD_KIBANA, "there is no such form of links before Kibana 7.14", "leave style out")
        return self


def pattern_of(entry: KibanaEntry, read: Iterable[str]) -> str:
    """Return the indices that hold the logs, as Kibana writes them: those of the section, else those that sources `read`; empty
    when nothing names any."""
    return ",".join(entry.indices or dict.fromkeys(read))


def kibana_of(entry: KibanaEntry | None, read: Iterable[str]) -> Kibana | None:
    """Return the Kibana of the section; None when there is no section. `read`: the indices that sources read."""
    if entry is None:
        return None
    return Kibana(
        entry.url.rstrip("/"),
        entry.data_view or "",
        _parse_version(entry.version),
        entry.space,
        entry.fields,
        pattern_of(entry, read),
        entry.style,
        entry.time_field,
        tuple(entry.columns),
        entry.tenant,
        entry.saved_search or "",
    )
