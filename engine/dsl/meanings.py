"""What every key of a rule file means, one sentence each: read by editors (the JSON Schema) and by people (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Mapping

# class of engine.dsl.schema -> key -> meaning
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "RuleFile": {
        "id": "Name of the rule: lower-case letters, digits, dashes; the same as the file's name.",
        "title": "One line for people; a template.",
        "status": "How far the rule has come: experimental (if not given), test, stable or deprecated. A deprecated rule still "
        "runs; `rules lint` names the rules that need it, and wants in `related` what stands in for it.",
        "severity": "How bad it is. `info` never opens an incident: it serves other rules.",
        "component": "Whose log text it is.",
        "versions": "Versions of that component, as bounds that must all hold; any if not given.",
        "detection": "What it looks for in one event: named items, and a `condition` over them.",
        "correlation": "What it looks for in several events over time; instead of `detection`.",
        "entity": "What one alert is about: keys, or a map of label to capture or label; the cluster if not given.",
        "collapse": "Matches of one entity within this time of the first are one occurrence.",
        "distinct": "Captures; each combination of their values counts once.",
        "clear": "When an alert is over; nothing for 1 h if not given, nothing for its `timespan` for a correlation.",
        "for": "How long it must hold before anyone is told.",
        "escalate": "Steps up in severity.",
        "told_as": "Rules whose id and severity the incident bears when more is known; the first that holds.",
        "explains": "Rules whose alerts with equal keys become symptoms of this one.",
        "continues": "Rules whose trouble this one is the next stage of.",
        "reopen_window": "The same entity again within this time is the same incident; 1 h if not given.",
        "labels": "Fixed labels, to route by.",
        "runbook": "What the reader is told; needed unless the severity is `info`.",
        "tests": "Log texts on which the rule fires, and near misses on which it stays silent.",
        "replaces": "Ids that this rule had before: an override that names one goes on to hold.",
        "related": "Ids of rules worth reading next.",
        "notes": "Anything; not used.",
    },
    "Within": {
        "before": "How long before the explaining rule a symptom may start; 1 min if not given.",
        "after": "How long after its last event a symptom may start; 10 min if not given.",
        "until": "How long after its last event a symptom may still be seen, or it is no symptom; for ever if not given.",
    },
    "ExplainsEntry": {
        "rules": "The rules that are explained.",
        "by": "Keys that must be equal: own key, or a map of own key to the symptom's.",
        "within": "How far from this rule's own span a symptom may start.",
        "scope_wide": "Say true to join on the cluster alone.",
        "at_least": "How severe this rule must be to explain them, and unexplained by what informs; `info` if not given.",
    },
    "ContinuesEntry": {
        "rule": "The rule of the earlier stage.",
        "by": "Keys that must be equal: own key, or a map of own key to the other's.",
        "within": "How long after the earlier stage this one may come; 72 h if not given.",
    },
    "ClearEntry": {
        "at_most": "The alert is over when no more than this many occurrences came ...",
        "in": "... within this time.",
        "rules": "Or: one of these rules was seen (a sign that it is over) ...",
        "quiet": "... and nothing counted for this long.",
    },
    "EscalateEntry": {
        "to": "The severity from then on.",
        "when": "An expression over captures, `count` and `lasting`, such as count >= 20 or lasting > 10m.",
    },
    "ToldAsEntry": {
        "rule": "The rule that stands for this trouble then.",
        "when": "An expression over all that the alerts of the incident captured, symptoms included.",
        "title": "The title of the incident then; a template. Cause and fix stay those of the rule it is rooted in.",
    },
    "CaseEntry": {
        "when": "An expression over the captures.",
        "cause": "Why this happens then; a template.",
        "title": "The title then, if it is another one; a template.",
        "impact": "What stops working then, if that is something else; a template.",
    },
    "StepEntry": {
        "do": "What to do, in words; a template.",
        "where": "At which level: whose settings, whose machine.",
        "set": "Settings and their values; templates.",
        "also": "The same settings in another spelling, such as environment variables.",
        "file": "Files to write: name and content; templates.",
        "run": "A command as a list of arguments; templates, no pipes.",
        "changes_state": "Say true where the command or setting alters anything.",
        "when": "An expression over the captures; where it is false for all that was captured, the step is left out.",
    },
    "RunbookEntry": {
        "cause": "Why this happens; a template.",
        "impact": "What stops working, for whom, and what goes on; a template.",
        "cases": "What is said instead when more is known; the first that holds.",
        "fix": "What to do, one step after the other.",
        "verify": "One command that shows that it is over.",
        "next_checks": "What to look at next, in words; templates.",
        "references": "Addresses of what to read.",
    },
    "TestEntry": {
        "log": "The text of one log.",
        "logs": "Texts of several logs by name.",
        "timeline": "Instead: a script of lines, and of what is expected when.",
        "labels": "Labels of every line, such as `timezone`.",
        "fires": "It fires, with these captures and labels; {} for whatever they are.",
        "silent": "Say true for a near miss: nothing fires.",
        "cause": "Text that the rendered title or cause must contain.",
        "fix": "Text that the rendered fix must contain.",
        "count": "How many occurrences the alert must have.",
        "severity": "The severity that the alert must have.",
    },
    "SoonerEntry": {
        "rules": "Complaints about the silent one.",
        "naming": "A map of the entity's label to the capture by which they name it.",
        "timespan": "How long after the first complaint it is definite; 60 s if not given.",
        "back": "Rules that take a complaint back.",
    },
    "StopEntry": {
        "rules": "Signs of a planned stop.",
        "within": "How long around the last line one of them has to be; 2 min if not given.",
        "naming": "A map of the entity's label to the capture by which they name it.",
    },
    "CorrelationEntry": {
        "type": "What is looked for over time.",
        "rules": "Whose matches are counted or put in order.",
        "group-by": "What one alert is about: keys, or a map of label to capture or label.",
        "timespan": "The window, which slides: a duration. Of an absence: what is too long, a duration or `heartbeat`.",
        "condition": "Over what is counted: a map of gt, gte, lt, lte, eq that must all hold, or an expression.",
        "open": "Of a pair: rules that begin what has to be finished.",
        "expect": "Of a pair: rules that finish it.",
        "within": "Of a pair: how long it may take.",
        "of": "Of an absence: who is expected, a component, or a rule whose matches are.",
        "sooner": "Of an absence: complaints that tell it earlier.",
        "unless": "Of an absence: a planned stop, which excuses it.",
        "after": "Of an absence: a planned stop, without which it is none: who was stopped and does not come back.",
    },
    "HeartbeatEntry": {
        "log": "A pattern of the line.",
        "every": "How often it is printed.",
        "versions": "In which versions of the component.",
    },
    "ComponentFile": {
        "name": "The component; the same as the file's name.",
        "label": "The label that the id of a process goes into.",
        "names": "Patterns with {member}: lines in which a process names itself.",
        "version": "Patterns with {version}: lines in which it tells its version.",
        "heartbeats": "Lines that it prints whatever happens.",
        "unless": "A component whose members are none of this one, though they print its lines too.",
        "notes": "Anything; not used.",
    },
    "FormatFile": {
        "name": "The layout; the same as the file's name.",
        "rank": "The lowest that fits is taken; 100 if not given.",
        "header": "RE2 with named groups among time, level, logger, thread, message; others are labels.",
        "time": "How the time is written.",
        "level": "The level of lines whose header says none.",
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
    "re": "the RE2 expression is found in it; named groups are captures; alternatives may share a name",
    "gt": "it is a number greater than this",
    "gte": "it is a number not below this",
    "lt": "it is a number less than this",
    "lte": "it is a number not above this",
    "exists": "it is there (true), or absent (false)",
    "all": "with one of these and a list: every value of the list, not any",
    "nocase": "with one of these: case does not count",
    "term": "the name of a list of texts in a file _terms.yml stands for them",
}

FUNCTION_MEANINGS: Mapping[str, str] = {
    "ceil_pow2(n)": "the smallest power of two that is not below n",
    "round_up(n, step)": "the smallest multiple of step that is not below n",
    "known(x)": "whether there is an x; true or false, never unknown",
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
    "duration": "the same as people say it",
    "brokers": "the ids of the cluster's brokers, as a comma list",
    "bootstrap": "the cluster's address, of the configuration",
    "connect_url": "the address of its Connect workers, of the configuration",
}

UNIT_MEANINGS: Mapping[str, str] = {
    "human": "a number of bytes as 1.07 MiB",
    "bytes": "a number with its thousands apart: 1,125,872",
    "ms": "a number of milliseconds as 10 min",
}
