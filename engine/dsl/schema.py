"""The structure of rule, component and format files, as pydantic models over text.

Scalars arrive as text; the types here turn them into values. Checks over several keys or files come later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from engine.dsl import quantities
from engine.dsl.codes import Code
from engine.dsl.report import did_you_mean
from engine.model.rules import COMPONENTS, SEVERITIES

STATUSES = ("experimental", "test", "stable", "deprecated")
PLACES = ("client", "topic", "broker", "worker", "connector", "os", "controller", "cluster")
CORRELATION_TYPES = ("event_count", "value_count", "temporal_ordered", "pair", "absence")
TIME_LAYOUTS = ("iso", "kibana", "epoch_ms", "short_year", "day_first", "month_day", "month_first", "twelve_hour")

T = TypeVar("T")


def _error(code: Code, message: str, help: str = "") -> PydanticCustomError:
    """Return the error that carries a diagnostic code through pydantic."""
    return PydanticCustomError(code.id, "{message}", {"message": message, "help": help, "code": code.name})


def _scalar(parse: Callable[[str], T], code: Code, kind: str, example: str, written: Any) -> BeforeValidator:
    """Return the validator of a scalar; `written` is its type in the JSON Schema, which editors check."""

    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            raise _error(Code.WRONG_KIND, f"must be {kind}, not a list or a map", example)
        try:
            return parse(value)
        except ValueError:
            raise _error(code, f"`{value}` is not {kind}", example) from None

    return BeforeValidator(convert, json_schema_input_type=written)


def one_of(words: Sequence[str]) -> BeforeValidator:
    """Return the validator of a word that is one of `words`."""

    def check(value: Any) -> Any:
        if value not in words:
            text = value if isinstance(value, str) else "a list or a map"
            raise _error(Code.NOT_ONE_OF, f"`{text}` is not one of the allowed words", did_you_mean(str(value), words))
        return value

    return BeforeValidator(check, json_schema_input_type=Annotated[str, Field(json_schema_extra={"enum": [*words]})])


def _valid_id(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(_ID, value):
        raise _error(Code.BAD_ID, "must be lower-case letters, digits and dashes", "for example: broker-disk-full")
    return value


def _not_empty(value: Any) -> Any:
    if value == "":
        raise _error(Code.EMPTY, "must not be empty", "write a value, or leave the key out")
    return value


def _as_map(value: Any) -> Any:
    """Return a list of names as a map of each name to itself; any other value unchanged."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {item: item for item in value}
    return value


_ID = r"^[a-z0-9][a-z0-9-]{0,99}$"
_DURATION = r"^[0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h|d)$"
_BOUND = r"(<=|>=|==|!=|<|>|=)\s*[0-9]+(\.[0-9]+){0,3}"

Flag = Annotated[bool, _scalar(quantities.flag, Code.BAD_FLAG, "a yes-or-no value", "write true or false", bool)]
Count = Annotated[
    int, _scalar(quantities.count, Code.BAD_NUMBER, "a whole number", "digits only, at most 19", Annotated[int, Field(ge=0)])
]
Duration = Annotated[
    float,
    _scalar(
        quantities.duration_s,
        Code.BAD_DURATION,
        "a duration",
        "for example: 500ms, 30s, 10m, 2h, 3d; at most 3650d",
        Annotated[str, Field(pattern=_DURATION)],
    ),
]
Versions = Annotated[
    tuple[tuple[str, str], ...],
    _scalar(
        quantities.versions,
        Code.BAD_VERSIONS,
        "a version range",
        'for example: ">=2.1,<4.1"',
        Annotated[str, Field(pattern=rf"^\s*{_BOUND}\s*(,\s*{_BOUND}\s*)*$")],
    ),
]
Severity = Annotated[str, one_of(SEVERITIES)]
RuleId = Annotated[str, BeforeValidator(_valid_id, json_schema_input_type=Annotated[str, Field(pattern=_ID)])]
Text = Annotated[str, BeforeValidator(_not_empty, json_schema_input_type=Annotated[str, Field(min_length=1)])]
Keys = Annotated[dict[str, str], BeforeValidator(_as_map, json_schema_input_type=list[str] | dict[str, str])]


class Strict(BaseModel):
    """A map without any other keys than its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Within(Strict):
    """How far from the explaining rule's own span a symptom may start."""

    before: Duration = 60.0
    after: Duration = 600.0
    until: Duration | None = None


class ExplainsEntry(Strict):
    """`explains`: rules whose alerts this rule is the cause of."""

    rules: list[RuleId] = Field(min_length=1)
    by: Keys
    within: Within = Within()
    scope_wide: Flag = False
    at_least: Severity = SEVERITIES[0]
    lowers: Flag = False


class ContinuesEntry(Strict):
    """`continues`: a rule of which this one is the next stage."""

    rule: RuleId
    by: Keys
    within: Duration = 72 * 3600.0


class ClearEntry(Strict):
    """`clear`: when an alert is over."""

    at_most: Count = 0
    in_: Duration | None = Field(default=None, alias="in")
    rules: list[RuleId] = []
    quiet: Duration = 0.0
    unless: list[RuleId] = []
    back: list[RuleId] = []


class EscalateEntry(Strict):
    """`escalate`: one step up in severity."""

    to: Severity
    when: Text


class TitleTranslation(Strict):
    """`ko` of a rule, or of `told_as`: the same in Korean."""

    title: Text


class ToldAsEntry(Strict):
    """`told_as`: a rule whose id and severity the incident takes when more is known."""

    rule: RuleId
    when: Text
    title: Text
    ko: TitleTranslation | None = None


class StepTranslation(Strict):
    """`ko` of a step: the same in Korean."""

    do: Text


class StepEntry(Strict):
    """`runbook.fix`: one step."""

    do: Text
    where: Annotated[str, one_of(PLACES)] | None = None
    set: dict[str, str] = {}
    also: dict[str, str] = {}
    file: dict[str, str] = {}
    run: list[str] = []
    changes_state: Flag = False
    when: Text | None = None
    ko: StepTranslation | None = None


class CaseTranslation(Strict):
    """`ko` of a case: the same in Korean."""

    cause: Text | None = None
    title: Text | None = None
    impact: Text | None = None


class CaseEntry(Strict):
    """`runbook.cases`: texts for a special case."""

    when: Text
    cause: Text
    title: Text | None = None
    impact: Text | None = None
    ko: CaseTranslation | None = None


class RunbookTranslation(Strict):
    """`ko` of a runbook: the same in Korean."""

    cause: Text | None = None
    impact: Text | None = None
    next_checks: list[Text] = []


class RunbookEntry(Strict):
    """`runbook`: cause, impact and fix for the reader of an alert."""

    cause: Text
    impact: Text
    cases: list[CaseEntry] = []
    fix: list[StepEntry] = []
    verify: list[str] = []
    next_checks: list[Text] = []
    references: list[Text] = []
    ko: RunbookTranslation | None = None


class TestEntry(Strict):
    """`tests`: one case. `fires` lists captures (and labels) that the match or alert must have."""

    __test__ = False  # not a pytest class

    log: str | None = None
    logs: dict[str, str] = {}
    timeline: str | None = None
    labels: dict[str, str] = {}
    fires: dict[str, str] | None = None
    silent: Flag = False
    cause: str | None = None
    fix: str | None = None
    count: Count | None = None
    severity: Severity | None = None


class SoonerEntry(Strict):
    """`correlation.sooner`: complaints that name the silent process."""

    rules: list[RuleId] = Field(min_length=1)
    naming: dict[str, str]
    timespan: Duration = 60.0
    back: list[RuleId] = []


class StopEntry(Strict):
    """`correlation.unless` and `correlation.after`: a planned stop."""

    rules: list[RuleId] = Field(min_length=1)
    within: Duration = 120.0
    naming: dict[str, str] = {}


class CorrelationEntry(Strict):
    """`correlation`: a rule over matches and time."""

    type: Annotated[str, one_of(CORRELATION_TYPES)]
    rules: list[RuleId] = []
    group_by: Keys = Field(default={"cluster": "cluster"}, alias="group-by")
    timespan: Text | None = None
    condition: Any = None
    open: list[RuleId] = []
    expect: list[RuleId] = []
    within: Duration | None = None
    of: RuleId | None = None
    sooner: SoonerEntry | None = None
    unless: StopEntry | None = None
    after: StopEntry | None = None


class RuleFile(Strict):
    """`rules/<component>/<id>.yml`."""

    id: RuleId
    title: Text
    status: Annotated[str, one_of(STATUSES)] = "experimental"
    severity: Severity
    component: Annotated[str, one_of(COMPONENTS)]
    versions: Versions = ()
    speaker: list[RuleId] = []
    not_during: list[RuleId] = []
    asked: Flag = False
    detection: dict[str, Any] | None = None
    correlation: CorrelationEntry | None = None
    entity: Keys | None = None
    collapse: Duration = 0.0
    distinct: list[str] = []
    clear: ClearEntry | None = None
    for_: Duration = Field(default=0.0, alias="for")
    escalate: list[EscalateEntry] = []
    told_as: list[ToldAsEntry] = []
    explains: list[ExplainsEntry] = []
    continues: list[ContinuesEntry] = []
    reopen_window: Duration = 3600.0
    labels: dict[str, str] = {}
    runbook: RunbookEntry | None = None
    ko: TitleTranslation | None = None
    tests: list[TestEntry] = []
    related: list[RuleId] = []
    replaces: list[RuleId] = []
    notes: Any = None


class HeartbeatEntry(Strict):
    """`heartbeats` of a component: a line that it prints at a fixed pace."""

    log: Text
    every: Duration
    versions: Versions = ()


class StatePhaseEntry(Strict):
    """`states.<name>` of a component: one way into the state and out of it."""

    begins: list[str] = Field(min_length=1)
    ends: list[str] = Field(min_length=1)
    at_most: Duration = 1800.0


class AnswerEntry(Strict):
    """`answers.<kind>` of a component: how a server that is asked states a fact of this kind."""

    by: list[Text] = Field(min_length=1)
    lines: list[str] = Field(min_length=1)
    gone: list[str] = []


class ComponentFile(Strict):
    """`rules/components/<name>.yml`."""

    name: RuleId
    label: Text
    names: list[str] = Field(min_length=1)
    version: list[str] = []
    heartbeats: list[HeartbeatEntry] = []
    unless: RuleId | None = None
    loggers: list[Text] = []
    states: dict[RuleId, list[StatePhaseEntry]] = {}
    answers: dict[RuleId, AnswerEntry] = {}
    notes: Any = None


class DialectFile(Strict):
    """`rules/dialects/<name>.yml`."""

    name: RuleId
    label: Text
    rank: Count = 100
    lines: list[Text] = []
    labels: dict[str, str] = {}
    spells: dict[str, Text] = {}
    names: dict[str, Text] = {}
    absent: dict[str, Text] = {}
    where: Annotated[str, one_of(PLACES)] | None = None
    commands: dict[str, Text] = {}
    absent_commands: dict[str, Text] = {}
    examples: list[Text] = Field(min_length=1)
    sources: list[Text] = Field(min_length=1)
    notes: Any = None


class FormatFile(Strict):
    """`rules/formats/<name>.yml`."""

    name: RuleId
    rank: Count = 100
    header: Text
    time: Annotated[str, one_of(TIME_LAYOUTS)] = "iso"
    level: str = ""
    labels: dict[str, str] = {}
    carries: list[RuleId] = []
    examples: list[Text] = []
    notes: Any = None
