"""The `audit` section of tocsin.yml: risks that are accepted. Schema and conversion to settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from engine.config.faults import finding_error
from engine.config.hours import Minute
from engine.dsl.codes import Code
from engine.dsl.report import did_you_mean
from engine.dsl.schema import Strict, Text
from engine.risks.judging import CHECK_IDS, KINDS, AcceptedRisk


def _check_id(value: str) -> str:
    if value not in CHECK_IDS:
        raise finding_error(Code.NOT_ONE_OF, f"`{value}` is not a check of the audit", did_you_mean(value, CHECK_IDS))
    return value


class IgnoreEntry(Strict):
    """risks that are accepted: checks, whose subjects fit a pattern, and the reason"""

    checks: list[Annotated[Text, AfterValidator(_check_id)]] = Field(default=[])
    topics: list[Text] = Field(default=[])
    groups: list[Text] = Field(default=[])
    connectors: list[Text] = Field(default=[])
    reason: Text

    @model_validator(mode="after")
    def _is_limited(self) -> IgnoreEntry:
        if not self.checks and not any(getattr(self, key) for key in KINDS):
            limits = ("checks", *KINDS)
            help = f"name what is accepted: {', '.join(f'`{key}`' for key in limits[:-1])} or `{limits[-1]}`"
            raise finding_error(Code.MISSING_KEY, "an entry with only a reason accepts every risk of every cluster", help)
        return self


class AuditDigestEntry(Strict):
    """who is sent what may break in the clusters that are asked, at most once a day"""

    receiver: Text
    at: Minute = Field(default="08:00", validate_default=True)


class AuditEntry(Strict):
    """what `tocsin audit` leaves out, and who is told what may break"""

    ignore: list[IgnoreEntry] = Field(default=[])
    digest: AuditDigestEntry | None = None


def accepted_risks(entry: AuditEntry) -> Sequence[AcceptedRisk]:
    """Return the accepted risks in their order."""
    return tuple(
        AcceptedRisk(
            ignored.reason,
            tuple(ignored.checks),
            {kind: tuple(getattr(ignored, key)) for key, kind in KINDS.items() if getattr(ignored, key)},
        )
        for ignored in entry.ignore
    )
