"""The summary incident of a digest, which represents several others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.model.incidents import Incident, Symptom
from engine.model.rules import SEVERITIES
from engine.model.words import worded


def summary_incident(
    members: Sequence[Incident], *, id: str, rule: str, title: str, cause: str, symptoms: Sequence[Symptom]
) -> Incident:
    """Return the summary incident of `members` (at least one).

    Its severity is that of the worst open member, and info when none is open; its revision is the number of members.
    """
    open_severities = (SEVERITIES.index(member.severity) for member in members if member.status == "open")
    return Incident(
        id=id,
        key=("", rule, ()),
        revision=len(members),
        rule=rule,
        title=title,
        severity=SEVERITIES[max(open_severities, default=SEVERITIES.index("info"))],
        status="open",
        component="any",
        labels={},
        first_seen=min((at for member in members if (at := member.first_seen) is not None), default=None),
        last_seen=max((at for member in members if (at := member.last_seen) is not None), default=None),
        resolved_at=None,
        count=len(members),
        cause=cause,
        impact="",
        symptoms=tuple(symptoms),
        translations=_translations(members),
    )


def number_of_incidents(number: int) -> str:
    """Return `1 incident` or `12 incidents`."""
    return worded("1 incident") if number == 1 else worded("{number:,} incidents", number=number)


def _translations(members: Sequence[Incident]) -> Mapping[str, dict[str, str]]:
    """Return the translations of all titles of `members`."""
    languages = dict.fromkeys(language for member in members for language in member.translations)
    return {
        language: {m.title: title for m in members if (title := m.translations.get(language, {}).get(m.title))}
        for language in languages
    }
