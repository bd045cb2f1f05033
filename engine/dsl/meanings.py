"""The meaning of every key of a rule file in one sentence, for editors (the JSON Schema) and for people (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Mapping

# class of engine.dsl.schema -> key -> meaning
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "RuleFile": {
        "id": "Name of the rule: lower-case letters, digits, dashes; the same as the file's name.",
        "title": "One line for people; a template.",
        "status": "The maturity of the rule: experimental (if not given), test, stable or deprecated. A deprecated rule still "
        "runs; `rules lint` names the rules that need it, and wants its replacement in `related`.",
        "severity": "How bad it is. `info` never opens an incident: it serves other rules.",
        "component": "The component whose log text it is.",
        "versions": "Versions of that component, as bounds that must all hold; any if not given.",
        "speaker": "Components whose processes print it; to vouch for them, it must begin a message of one of their processes.",
        "not_during": "States of a source: what it prints while it is in one of them does not count.",
        "detection": "The text to look for in one event: named items, and a `condition` over them.",
        "correlation": "The pattern to look for in several events over time; instead of `detection`.",
        "entity": "The subject of one alert: keys, or a map of label to capture or label; the cluster if not given.",
        "collapse": "Matches of one entity within this time of the first are one occurrence.",
        "distinct": "Captures; each combination of their values counts once.",
        "clear": "When an alert is over; if not given, after 1 h without a match, or for a correlation after its `timespan`.",
        "for": "How long it must hold before anyone is notified.",
        "escalate": "Steps up in severity.",
        "told_as": "Rules whose id and severity the incident takes when more is known; the first whose `when` holds.",
        "explains": "Rules whose alerts with equal keys become symptoms of this one.",
        "continues": "Rules of which this one is the next stage.",
        "reopen_window": "The same entity again within this time is the same incident; 1 h if not given.",
        "labels": "Fixed labels, to route by.",
        "runbook": "Cause, impact and fix for the reader of an alert; needed unless the severity is `info`.",
        "tests": "Log texts on which the rule fires, and near misses on which it stays silent.",
        "replaces": "Former ids of this rule: an override of one of them still applies.",
        "related": "Ids of rules to read next.",
        "notes": "Anything; not used.",
    },
    "Within": {
        "before": "How long before the explaining rule a symptom may start; 1 min if not given.",
        "after": "How long after its last event a symptom may start; 10 min if not given.",
        "until": "How long after its last event a symptom may go on; one that goes on longer is not a symptom. No limit if not "
        "given.",
    },
    "ExplainsEntry": {
        "rules": "The rules that are explained.",
        "by": "Keys that must be equal: own key, or a map of own key to the symptom's.",
        "within": "How far from this rule's own span a symptom may start.",
        "scope_wide": "Write true to join on the cluster alone.",
        "at_least": "The least severity at which an alert of this rule explains them; `info` if not given. Above `info`, an "
        "alert that an `info` rule explains does not explain them.",
        "lowers": "Write true to report them all the same, at `low`, and only while they have occurred once.",
    },
    "ContinuesEntry": {
        "rule": "The rule of the earlier stage.",
        "by": "Keys that must be equal: own key, or a map of own key to the other's.",
        "within": "How long after the earlier stage this one may come; 72 h if not given.",
    },
    "ClearEntry": {
        "at_most": "The alert is over when no more than this many occurrences came ...",
        "in": "... within this time.",
        "rules": "Or: one of these rules matched (a sign that it is over) ...",
        "quiet": "... and no occurrence came for this long.",
    },
    "EscalateEntry": {
        "to": "The severity from then on.",
        "when": "An expression over captures, `count` and `lasting`, such as count >= 20 or lasting > 10m.",
    },
    "ToldAsEntry": {
        "rule": "The rule whose id and severity the incident takes.",
        "when": "An expression over all captures of the incident's alerts, symptoms included.",
        "title": "The title of the incident then; a template. Cause and fix stay those of the root's rule.",
    },
    "CaseEntry": {
        "when": "An expression over the captures.",
        "cause": "Why this happens then; a template.",
        "title": "The title then, if it differs; a template.",
        "impact": "What stops working then, if it differs; a template.",
    },
    "StepEntry": {
        "do": "What to do, in words; a template.",
        "where": "The level of the step: whose settings, whose machine.",
        "set": "Settings and their values; templates.",
        "also": "The same settings in another spelling, such as environment variables.",
        "file": "Files to write: name and content; templates.",
        "run": "A command as a list of arguments; templates, no pipes.",
        "changes_state": "Write true where the command or setting changes anything.",
        "when": "An expression over the captures; the step is left out where it is false for all captured values.",
    },
    "RunbookEntry": {
        "cause": "Why this happens; a template.",
        "impact": "What stops working, for whom, and what goes on; a template.",
        "cases": "Other texts for special cases; the first whose `when` holds.",
        "fix": "What to do, one step after the other.",
        "verify": "One command that shows that it is over.",
        "next_checks": "What to look at next, in words; templates.",
        "references": "Addresses of documentation.",
    },
    "TestEntry": {
        "log": "The text of one log.",
        "logs": "Texts of several logs by name.",
        "timeline": "Instead: a script of lines and expectations, each with its time.",
        "labels": "Labels of every line, such as `timezone`.",
        "fires": "It fires, with these captures and labels; {} for any.",
        "silent": "Write true for a near miss: nothing fires.",
        "cause": "Text that the rendered title or cause must contain.",
        "fix": "Text that the rendered fix must contain.",
        "count": "How many occurrences the alert must have.",
        "severity": "The severity that the alert must have.",
    },
    "SoonerEntry": {
        "rules": "Rules for complaints about the silent process.",
        "naming": "A map of the entity's label to the capture in which they name it.",
        "timespan": "How long after the first complaint the silence is certain; 60 s if not given.",
        "back": "Rules that withdraw a complaint.",
    },
    "StopEntry": {
        "rules": "Rules for signs of a planned stop.",
        "within": "The largest distance in time from the last line to such a sign; 2 min if not given.",
        "naming": "A map of the entity's label to the capture in which they name it.",
    },
    "CorrelationEntry": {
        "type": "The kind of correlation.",
        "rules": "The rules whose matches are counted or put in order.",
        "group-by": "The subject of one alert: keys, or a map of label to capture or label.",
        "timespan": "The sliding window, a duration. Of an absence: the silence that is too long, a duration or `heartbeat`.",
        "condition": "Over the count: a map of gt, gte, lt, lte, eq that must all hold, or an expression.",
        "open": "Of a pair: rules that open it.",
        "expect": "Of a pair: rules that complete it.",
        "within": "Of a pair: how long it may stay open.",
        "of": "Of an absence: the component whose processes are expected to print, or the rule whose matches are expected.",
        "sooner": "Of an absence: complaints of others, which make the verdict earlier.",
        "unless": "Of an absence: a planned stop, which excuses it.",
        "after": "Of an absence: a planned stop that must come first: the process was stopped and does not come back.",
    },
    "HeartbeatEntry": {
        "log": "A pattern of the line.",
        "every": "How often it is printed.",
        "versions": "In which versions of the component.",
    },
    "StatePhaseEntry": {
        "begins": "Patterns of lines with which it begins.",
        "ends": "Patterns of lines with which it ends.",
        "at_most": "How long it lasts when no such line comes; 30 min if not given.",
    },
    "ComponentFile": {
        "name": "The component; the same as the file's name.",
        "label": "The label for the id of a process.",
        "names": "Patterns with {member}: lines in which a process names itself.",
        "version": "Patterns with {version}: lines in which it prints its version.",
        "heartbeats": "Lines that it prints at a fixed pace.",
        "unless": "A component whose processes print the same lines but do not belong to this one.",
        "loggers": "Logger packages of its processes: a name counts only at the beginning of a message of one of these.",
        "states": "States that its processes go through, by name; each is a list of ways into it and out of it.",
        "notes": "Anything; not used.",
    },
    "FormatFile": {
        "name": "The layout; the same as the file's name.",
        "rank": "Of the formats that fit, the one with the lowest rank is used; 100 if not given.",
        "header": "RE2 with named groups among time, level, logger, thread, message; others are labels.",
        "time": "How the time is written.",
        "level": "The level of lines without one in their header.",
        "labels": "Labels of every event of this layout.",
        "carries": "Formats whose later events take this line's labels.",
        "examples": "Lines that the header must match.",
        "notes": "Anything; not used.",
    },
}

MODIFIER_MEANINGS: Mapping[str, str] = {
    "contains": "the field holds this text",
    "startswith": "it begins with it",
    "endswith": "it ends with it",
    "re": "the RE2 expression matches in it; named groups and holes `{name:type}` are captures; alternatives may share a name",
    "gt": "it is a number greater than this",
    "gte": "it is a number not below this",
    "lt": "it is a number less than this",
    "lte": "it is a number not above this",
    "exists": "it is present (true), or absent (false)",
    "all": "with one of these and a list: every value of the list, not any",
    "nocase": "with one of these: upper and lower case are equal",
    "term": "the value is the name of a list of texts in a file of terms: `<library>.<name>`, or a name of a _terms.yml",
}

FUNCTION_MEANINGS: Mapping[str, str] = {
    "ceil_pow2(n)": "the smallest power of two that is not below n",
    "round_up(n, step)": "the smallest multiple of step that is not below n",
    "known(x)": "whether x has a value; true or false, never unknown",
    "min(a, b, ...)": "the smallest of up to 16 values, or of one list such as `x.all`",
    "max(a, b, ...)": "the largest of them",
    "len(x)": "the length of a text, the number of values of a list",
    "lower(text)": "the text in lower case",
    "reassignment(topic, partitions, brokers)": "JSON for kafka-reassign-partitions: these partitions on all the brokers",
}

CONTEXT_MEANINGS: Mapping[str, str] = {
    "count": "how many occurrences",
    "first_seen": "the time of the first",
    "last_seen": "the time of the last",
    "duration_s": "the seconds between the two, a number",
    "duration": "the same in words, such as 10 min",
    "brokers": "the ids of the cluster's brokers, as a comma list",
    "bootstrap": "the cluster's address, from the configuration",
    "connect_url": "the address of its Connect workers, from the configuration",
}

UNIT_MEANINGS: Mapping[str, str] = {
    "human": "a number of bytes as 1.07 MiB",
    "bytes": "a number with its thousands apart: 1,125,872",
    "ms": "a number of milliseconds as 10 min",
}
