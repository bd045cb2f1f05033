"""`python -m tests.rulepack.answers RULE [CASE]...`: the message about each case of a rule, and what is wrong with it."""

from __future__ import annotations

import sys

from tests.corpus.cases import cases, outcomes_of
from tests.rulepack.answers.judging import answers, deviations, fix_lines


def main(rule: str, *names: str) -> None:
    """Print the first incident of each case of `rule`, or of those named, and its deviations from the written answer."""
    judged = outcomes_of(case for case in cases().values() if case.rule == rule and (not names or case.name in names))
    for id_, outcome in judged.items():
        wrong = deviations(answers()[id_], outcome) if id_ in answers() else outcome.faults
        print(f"\n=== {id_}", *(f"\n!!! {fault}" for fault in wrong))
        for first in outcome.incidents[:1]:
            print(f"{first.severity} {first.rule}: {first.title}\n  C {first.cause}\n  I {first.impact}")
            print(*(f"  F {line}\n" for line in fix_lines(first) if line), sep="", end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
