"""Small alerts and rules for tests of grouping: a scene is a plan of a few rules and alerts on a time line of minutes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from engine.model.expressions import Literal, NameExpression
from engine.model.incidents import Alert, Capture
from engine.model.matches import Value
from engine.model.rules import (
    Absence,
    Continues,
    Correlation,
    Explains,
    Hole,
    Item,
    Plan,
    Rule,
    Runbook,
    Signature,
    Step,
    Template,
)

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)


def minute(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def text(*parts: str | Hole) -> Template:
    return Template(parts or ("",))


def hole(name: str, unit: str = "", charset: str = "") -> Hole:
    return Hole(NameExpression(name), unit, charset, f"{{{name}}}")


def rule(
    id_: str,
    severity: str = "high",
    explains: Iterable[Explains] = (),
    continues: Iterable[Continues] = (),
    fix: Iterable[Step] = (),
    title: Template | None = None,
    reopen_window_s: float = 3600,
) -> Rule:
    return Rule(
        id=id_,
        title=title or text(id_),
        status="stable",
        severity=severity,
        component="any",
        versions=(),
        entity={"cluster": "cluster"},
        runbook=Runbook(text(f"cause of {id_}"), text(f"impact of {id_}"), tuple(fix)),
        explains=tuple(explains),
        continues=tuple(continues),
        reopen_window_s=reopen_window_s,
    )


def explains(rules: str, before_m: float = 1, after_m: float = 10, **by: str) -> Explains:
    return Explains(tuple(rules.split()), by, before_m * 60, after_m * 60)


def plan(*rules: Rule, silences: Iterable[str] = ()) -> Plan:
    """A plan of signatures, of which those named in `silences` are absences."""
    absences = frozenset(silences)
    signatures = [Signature(r, (Item("any", ()),), Literal(True)) for r in rules if r.id not in absences]
    silent = [Correlation(r, "absence", (), 0.0, absence=Absence("broker")) for r in rules if r.id in absences]
    return Plan((), (), tuple(signatures), tuple(silent))


def number(*values: float) -> Capture:
    return Capture(values, values[0], values[-1], min(values), max(values), sum(values))


def alert(
    rule_id: str,
    start: float,
    end: float | None = None,
    *,
    over: bool = False,
    severity: str = "high",
    status: str = "",
    count: int = 1,
    dated: bool = True,
    captures: Mapping[str, Capture | Value] | None = None,
    events: Iterable[str] = (),
    sources: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    **entity: str,
) -> Alert:
    """An alert of `entity` from minute `start` to minute `end`; over then, or still firing."""
    last = minute(start if end is None else end)
    held = {k: v if isinstance(v, Capture) else Capture((v,)) for k, v in (captures or {}).items()}
    known = {name: value for name, value in entity.items() if not value.startswith("?")}
    return Alert(
        key=("prod", rule_id, tuple(sorted({"cluster": "prod", **entity}.items()))),
        status=status or ("resolved" if over else "firing"),
        severity=severity,
        starts_at=minute(start),
        last_seen=last,
        ends_at=last if over else None,
        count=count,
        dated=dated,
        labels={"cluster": "prod", **known, **(labels or {})},
        captures=held,
        events=tuple(events) or (f"{rule_id}@{start}",),
        evidence=tuple(events)[:6] or (f"{rule_id}@{start}",),
        sources=tuple(sources),
    )
