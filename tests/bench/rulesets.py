"""Rules to measure with: the shipped ones and, beyond them, made ones in the same language, of which the corpus bears none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

from msgspec.structs import replace

from engine.dsl import builtin_rules, load, load_cached
from engine.model.rules import Plan

_SUBJECTS = (
    "Replica fetcher",
    "Log cleaner",
    "Group coordinator",
    "Sink task",
    "Source task",
    "Quota manager",
    "Snapshot reader",
)
_VERBS = ("append to", "flush", "commit", "rebalance", "resume", "register", "deserialize", "truncate", "elect a leader for")
_OBJECTS = ("partition {tp:tp}", "segment {name}", "connector {name}", "group {name}", "topic {name}", "offset {n:int}")
_CAUSES = (
    "the epoch {e:int} is stale",
    "its lease expired after {ms:ms}",
    "the schema {s} is unknown",
    "{q} bytes exceed the quota",
)
_FILE = """\
id: {id}
title: Made for measuring
severity: low
component: any
detection: {{seen: "{pattern}", condition: seen}}
runbook: {{cause: none, impact: none}}
"""


def plan_of(count: int, folder: Path) -> Plan:
    """Return a plan of `count` rules, the shipped ones first; component lines and formats are always those that are shipped."""
    made = made_rules(count, folder)
    plan = load([builtin_rules(), *([made] if any(made.iterdir()) else [])])
    return replace(plan, signatures=plan.signatures[:count], correlations=())


def made_rules(count: int, folder: Path) -> Path:
    """Return a folder in `folder` with as many made rules as make `count` signatures with those that are shipped."""
    made = folder / f"rules-{count}"
    made.mkdir(exist_ok=True)
    for number in range(count - len(load_cached([builtin_rules()]).signatures)):
        (made / f"made-{number}.yml").write_text(_FILE.format(id=f"made-{number}", pattern=_pattern(number)), encoding="utf-8")
    return made


def _pattern(number: int) -> str:
    random = Random(number)
    subject, verb, thing, cause = (random.choice(words) for words in (_SUBJECTS, _VERBS, _OBJECTS, _CAUSES))
    return f"{subject} {number} could not {verb} {thing} because {cause}"


def expressions(rules: Plan) -> Sequence[str]:
    """Return the signs of the signatures as expressions for other tools: any digit, any blanks, but only small letters.

    With the whole expressions of the shipped rules ripgrep takes milliseconds a line.
    """
    signs = dict.fromkeys(sign for signature in rules.signatures for sign in signature.signs)
    return [re.sub(r"\\? ", r"\\s+", re.escape(sign).replace("0", "[0-9]")) for sign in signs]
