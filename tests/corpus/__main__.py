"""`python -m tests.corpus`: how many posted logs each rule diagnoses; rules with misses first, all together last."""

from __future__ import annotations

from collections import Counter

from tests.corpus.cases import outcomes


def main() -> None:
    """Print the table."""
    total, right = Counter[str](), Counter[str]()
    for outcome in outcomes().values():
        total[outcome.case.rule] += 1
        right[outcome.case.rule] += not outcome.faults
    print(f"{'rule':45} {'cases':>6} {'right':>6} {'share':>6}")
    for rule in sorted(total, key=lambda rule: (right[rule] / total[rule], rule)):
        print(f"{rule:45} {total[rule]:6} {right[rule]:6} {right[rule] / total[rule]:6.0%}")
    print(f"{'all':45} {total.total():6} {right.total():6} {right.total() / total.total():6.1%}")


if __name__ == "__main__":
    main()
