"""How much state a live entity takes: what correlators would store at the end of each of the samples, and of a storm."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, median, quantiles

from connectors.files import read_path
from engine.correlate import Correlator
from engine.match.stream import match
from engine.model.matches import ActivitySpan, Match
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap
from tests.bench.corpus import STORM_RATE
from tests.bench.machine import corpus, say
from tests.rulepack.playing import SAMPLES, plan

STORM_LINES = 10_000


def measure(folder: Path) -> None:
    """Measure and print."""
    samples = [path for path in sorted(SAMPLES.iterdir()) if path.is_dir()]
    _say("the samples", [size for sample in samples for size in _entities(sorted(sample.rglob("*.log")), plan())])
    storm = corpus(folder, STORM_LINES, STORM_RATE)
    _say("a storm, which has a hundred matches and more of each", list(_entities([storm], plan())))


def _say(what: str, sizes: list[int]) -> None:
    most = quantiles(sizes, n=10)[-1]
    say("result", f"{what}: {len(sizes)} live entities of a rule with {mean(sizes):,.0f} bytes of state on average")
    say("measured", f"half below {median(sizes):,.0f} bytes, nine in ten below {most:,.0f}, the largest {max(sizes):,}")


def _entities(logs: Iterable[Path], rules: Plan) -> Iterator[int]:
    """Yield how many bytes each entity of each rule takes; a rule that keeps its entities together counts as one."""
    states: dict[str, dict[str, str]] = defaultdict(dict)
    correlators: dict[str, Correlator] = {}
    for log in logs:
        for item in match(decode(assemble(unwrap(read_path(str(log)), rules.formats), rules.formats), rules.formats), rules):
            if isinstance(item, Match | ActivitySpan):
                scope = item.labels.get("cluster", "default")
                if scope not in correlators:
                    correlators[scope] = Correlator(rules, scope, states[scope])
                correlators[scope].observe(item)
    for scope, correlator in correlators.items():
        correlator.flush()
        for rule, text in states[scope].items():
            state = json.loads(text) if rule != "head" else {"rows": []}
            rows = state.get("rows", [state]) if isinstance(state, dict) else [state]
            yield from (len(json.dumps(row, separators=(",", ":"))) for row in rows)
