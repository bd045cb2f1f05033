"""Rules as the engine runs them: compiled by `engine/dsl` from YAML, frozen, serialisable, free of file positions.

A rule is either a Signature (over one event) or a Correlation (over matches and time); `Rule` holds what both share.
Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.model.dialects import Dialect
from engine.model.expressions import Expression
from engine.model.redaction import Redaction

SEVERITIES = ("info", "low", "medium", "high", "critical")
COMPONENTS = (
    "broker controller client connect spring streams debezium schema-registry zookeeper strimzi tocsin any".split()  # noqa: SIM905
)
# the beginning of a message; with an unknown header: after its level, if only bracketed words come before that
BEGINNING = r"\A(?:(?:[^A-Za-z\n\[]|\[[^\]\n]*\])*(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)[\s:|\]-]+)?"
OWN = "tocsin"  # component of rules about tocsin's own input, and the source of their events


HOST = "host"  # unit of a hole: an address without scheme, port and path
SIGNS_IN = "signs_in"  # name in the context of a cluster that is asked with a login or TLS
OMITTED = "\0"  # stands in `Hole.instead` of a hole that says nothing where it has no value


class Hole(Struct, frozen=True):
    """A computed value in a template. `unit` (human, bytes, ms, host) is how a value is written; `charset` names the value type
    whose characters are allowed when the template is part of a command ("" = plain text). In prose, a missing value is replaced
    by the first of `others` that has one, and by `instead` when none has."""

    expression: Expression
    unit: str = ""
    charset: str = ""
    source: str = ""
    instead: str = ""
    others: tuple[Expression, ...] = ()


class Template(Struct, frozen=True, omit_defaults=True):
    """Text with holes, in order. `translations`: the same in other languages, by language."""

    parts: tuple[str | Hole, ...]
    translations: Mapping[str, tuple[str | Hole, ...]] = field(default_factory=dict)


class Step(Struct, frozen=True):
    """One step of a fix: what to do, at which level, the settings (and their other spelling), files, the command as argv.

    `when`: the condition on the captures under which the step is shown; None: always.
    """

    do: Template
    where: str = ""
    set: Mapping[str, Template] = field(default_factory=dict)
    also: Mapping[str, Template] = field(default_factory=dict)
    file: Mapping[str, Template] = field(default_factory=dict)
    run: tuple[Template, ...] = ()
    changes_state: bool = False
    when: Expression | None = None


class Case(Struct, frozen=True):
    """Replaces the cause of a runbook when `when` holds over the captures, and title and impact unless they are None."""

    when: Expression
    cause: Template
    title: Template | None = None
    impact: Template | None = None


class Runbook(Struct, frozen=True):
    """The explanation and fix of a rule; the first of `cases` that holds makes it more specific."""

    cause: Template
    impact: Template
    fix: tuple[Step, ...] = ()
    verify: tuple[Template, ...] = ()
    next_checks: tuple[Template, ...] = ()
    references: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()


class Explains(Struct, frozen=True):
    """This rule is the cause of alerts of `rules` whose keys are equal and that start in [-before, +after] of its own interval.

    Alerts that go on for longer than `until_s` after its end are not explained; None: no limit.
    `by` maps a key of this rule to the key of the symptom. Keys are looked up in entity, captures, then labels. With
    `at_least` an alert explains others only from that severity on, and no alert of severity info explains it. With `lowers` the
    alerts become no symptoms: each stays an alert of its own, of severity low while it has occurred once.
    """

    rules: tuple[str, ...]
    by: Mapping[str, str]
    before_s: float
    after_s: float
    scope_wide: bool = False
    at_least: str = SEVERITIES[0]
    until_s: float | None = None
    lowers: bool = False


class Continues(Struct, frozen=True):
    """This rule is the next stage of an incident of `rule`: it reopens that incident within `within_s`."""

    rule: str
    by: Mapping[str, str]
    within_s: float


class Clear(Struct, frozen=True):
    """When an alert ends: at most `at_most` occurrences in `in_s`, or a match of `rules` and `quiet_s` without occurrences.

    With `in_s` 0 silence alone ends nothing: what is over is a state that lasts, such as a task that was killed. A match of
    `unless`, an answer of the cluster, contradicts any end, until one of `rules` or `back` about the same thing.
    """

    at_most: int = 0
    in_s: float = 3600.0
    rules: tuple[str, ...] = ()
    quiet_s: float = 0.0
    unless: tuple[str, ...] = ()
    back: tuple[str, ...] = ()

    @property
    def signs(self) -> tuple[str, ...]:
        """All rules whose matches have to do with an end."""
        return (*self.rules, *self.unless, *self.back)

    @property
    def lasts(self) -> bool:
        """Whether silence alone never ends an alert."""
        return self.in_s <= 0


class Escalation(Struct, frozen=True):
    """Severity becomes `to` when `when` holds over `count`, `lasting` (seconds) and the captures."""

    to: str
    when: Expression


class ToldAs(Struct, frozen=True):
    """An incident is reported under the id of `rule`, with at least its severity, and with `title`, when `when` holds over the
    captures of all its alerts. Cause and fix stay those of the root alert's rule."""

    rule: str
    when: Expression
    title: Template


class Rule(Struct, frozen=True):
    """The common part of signatures and correlations.

    `entity` maps a label of the alert to the capture or label it is read from (usually the same word). A missing entity value
    never joins two sources: the source's identity replaces it. `captures` maps every capture name to its type.
    A rule of severity info never opens an incident alone: it serves correlations and appears as a symptom.
    """

    id: str
    title: Template
    status: str
    severity: str
    component: str
    versions: tuple[tuple[str, str], ...]  # ((">=", "0.9"), ...): all must hold; empty: any
    entity: Mapping[str, str]
    runbook: Runbook
    captures: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    explains: tuple[Explains, ...] = ()
    continues: tuple[Continues, ...] = ()
    clear: Clear = field(default_factory=Clear)
    escalate: tuple[Escalation, ...] = ()
    told_as: tuple[ToldAs, ...] = ()  # the first that holds
    for_s: float = 0.0
    reopen_window_s: float = 3600.0
    path: str = ""
    replaces: tuple[str, ...] = ()  # former ids, which configurations may still use
    speaker: tuple[str, ...] = ()  # components whose processes write it; lines of others are hearsay; empty: any process
    not_during: tuple[str, ...] = ()  # states of a source; what it prints while it is in one of them does not count
    asked: bool = False  # whether its lines are answers of a server that was asked


class Captured(Struct, frozen=True):
    """A hole of a pattern: regular expression group (1-based), name, type; equal names must hold equal text."""

    group: int
    name: str
    type: str


class Test(Struct, frozen=True):
    """One check of one field. `op`: pattern and re search `regex` (RE2 syntax); contains, startswith, endswith compare
    `value`; gt gte lt lte compare numbers; exists holds when the field is present iff value == "true".

    `literals` must all occur in the field for `regex` to match (a cheap necessary condition; may be empty). One of `signs`
    stands in the text of every event for which the test holds (engine/model/signs); empty: none are known.
    """

    __test__: ClassVar[bool] = False  # not a pytest class

    field: str
    op: str
    value: str = ""
    regex: str = ""
    literals: tuple[str, ...] = ()
    captures: tuple[Captured, ...] = ()
    nocase: bool = False
    signs: tuple[str, ...] = ()

    def at_beginning(self) -> Test:
        """Return this pattern, restricted to the beginning of a message."""
        return replace(self, field="message", regex=f"{BEGINNING}(?:{self.regex})")


class Item(Struct, frozen=True):
    """A named detection item: any of several groups of tests that must all hold."""

    name: str
    any_of: tuple[tuple[Test, ...], ...]


class Signature(Struct, frozen=True):
    """A rule over one LogEvent. Items not named in `condition` only add captures. An event for which `exceptions` holds, or
    `unless` is true for the captures, is ignored: the exceptions of an installation.

    `collapse_s` > 0: matches of one entity within that time of the first are one occurrence. `distinct`: each tuple of these
    captures counts once. `loggers`: packages that an event's logger, if it has one, must be in; empty: any. One of `signs`
    stands in the text of every event that it matches (engine/model/signs); empty: none are known.
    """

    rule: Rule
    items: tuple[Item, ...]
    condition: Expression
    collapse_s: float = 0.0
    distinct: tuple[str, ...] = ()
    exceptions: Item | None = None
    unless: Expression | None = None
    loggers: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()


class Sooner(Struct, frozen=True):
    """An absence is reported earlier when `rules` complain about the entity: `naming` maps the entity's label to their capture.

    It is definite rather than suspected `timespan_s` after the first complaint; matches of the rules `back` cancel complaints.
    """

    rules: tuple[str, ...]
    naming: Mapping[str, str]
    timespan_s: float
    back: tuple[str, ...] = ()


class Stop(Struct, frozen=True):
    """A planned stop: one of `rules` within `within_s` of the last line before a silence."""

    rules: tuple[str, ...]
    within_s: float
    naming: Mapping[str, str] = field(default_factory=dict)


UNCOLLECTED = "not_collected"  # of the alert on a member that a cluster sees work and of which nothing was read
ABSENCE_ITEMS = frozenset((UNCOLLECTED,))  # what is an item of each rule with an absence


class Absence(Struct, frozen=True):
    """What is expected to continue: lines of `of`, a component (its bound sources) or a signature (its matches).

    `timespan_s` 0 means heartbeat: 2.5 times the heartbeat interval of the component's version. With `unless` a silence that
    begins with a planned stop is no absence; with `after` only such a silence is one.
    """

    of: str
    timespan_s: float = 0.0
    sooner: Sooner | None = None
    unless: Stop | None = None
    after: Stop | None = None

    @property
    def stop(self) -> Stop | None:
        """The planned stop of `after` or `unless`; None without either."""
        return self.after or self.unless


class Correlation(Struct, frozen=True):
    """A rule over matches of signatures, or alerts of other correlations, named by `rules`.

    Types are Sigma's event_count, value_count and temporal_ordered, and absence and pair. `condition` sees `count`: the
    occurrences, or the distinct values of the capture `field`. In a pair a match of `rules` opens it, and a match of `expect`
    must follow within `timespan_s`.
    """

    rule: Rule
    type: str
    rules: tuple[str, ...]
    timespan_s: float
    condition: Expression | None = None
    absence: Absence | None = None
    field: str = ""
    expect: tuple[str, ...] = ()


class Heartbeat(Struct, frozen=True):
    """A line that a component of these versions prints unconditionally every `every_s` seconds."""

    test: Test
    every_s: float
    versions: tuple[tuple[str, str], ...] = ()


class StatePhase(Struct, frozen=True):
    """One way into a state and out of it: from a line that fits one of `begins` to the next that fits one of `ends`, both
    included, but no longer than `at_most_s`."""

    begins: tuple[Test, ...]
    ends: tuple[Test, ...]
    at_most_s: float


class AnswerLines(Struct, frozen=True):
    """The lines in which a server that is asked states a fact of one kind: `by` are the captures or labels that identify what
    it is about, `gone` lines that say that it is not there any more."""

    by: tuple[str, ...]
    lines: tuple[Test, ...]
    gone: tuple[Test, ...] = ()


class Component(Struct, frozen=True):
    """How to recognise a process of this component: `names` are lines that capture the member (captures named `member`),
    `version` lines that capture the version. Two names that agree bind a source to (component, member), unless the source is a
    member of the component `unless`.

    With `loggers` (packages) a name counts only at the beginning of a message, and only if the logger, where the layout prints
    one, is in one of these packages. The same is so of the lines that begin and end `states`; a source is in a state while it
    is in one of the state's phases.
    """

    name: str
    label: str  # the label that holds the member: broker, worker ...
    names: tuple[Test, ...]
    version: tuple[Test, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    unless: str = ""
    loggers: tuple[str, ...] = ()
    states: Mapping[str, tuple[StatePhase, ...]] = field(default_factory=dict)
    answers: Mapping[str, AnswerLines] = field(default_factory=dict)  # by kind of fact


class Format(Struct, frozen=True):
    """A line layout: `header` is RE2 syntax with named groups among time, level, logger, thread, message, and label names.

    `time` names the stamp's layout (see engine/parse/times.py). The matching format with the lowest `rank` is used.
    `labels` are added to every event of this layout; `level` is the level of events whose header has none. `carries` names
    formats whose later events in the same source get the label groups of this line too (a DumpLogSegments line that names the
    topic of the records below it).
    """

    name: str
    header: str
    time: str = "iso"
    rank: int = 100
    labels: Mapping[str, str] = field(default_factory=dict)
    carries: tuple[str, ...] = ()
    level: str = ""


class Plan(Struct, frozen=True):
    """Everything that was loaded, as `replay()` and the Spark job run it. `hash` identifies its content."""

    formats: tuple[Format, ...]
    components: tuple[Component, ...]
    signatures: tuple[Signature, ...]
    correlations: tuple[Correlation, ...]
    hash: str = ""
    context: Mapping[str, str] = field(default_factory=dict)  # bootstrap, connect_url ... of the configuration, by cluster
    redaction: Redaction = Redaction()
    dialects: tuple[Dialect, ...] = ()  # by rank
    # level of a step -> setting that a fix changes there -> the level of its spelling in a dialect
    setting_levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    languages: tuple[str, ...] = ()  # of receivers, besides English: incidents have their texts in these too

    def rules(self) -> Mapping[str, Rule]:
        """Return every rule by id."""
        parts: tuple[Signature | Correlation, ...] = (*self.signatures, *self.correlations)
        return {part.rule.id: part.rule for part in parts}

    def explained_rules(self) -> frozenset[str]:
        """Return the ids of the rules that other rules explain: their incidents wait for a cause before they are notified."""
        return frozenset(id_ for rule in self.rules().values() for entry in rule.explains for id_ in entry.rules)
