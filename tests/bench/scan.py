"""What a scan costs in a bare process: with 20, 100 and 1,000 rules, beside other tools with the same expressions over the same
file; in a storm; of a small file from start to answer; and its memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from connectors.files import read_chunks
from engine.cache import DiskCache
from engine.cli.unknown import ERROR_SIGN
from engine.columns.bounded import Bounded
from engine.match import Matcher
from engine.model.rules import Plan
from tests.bench.corpus import COMMON_RATE, QUIET_RATE, STORM_RATE
from tests.bench.machine import corpus, say
from tests.bench.rulesets import expressions, plan_of
from tests.bench.tools import head, tools
from tests.wrapping import wrapped

TOCSIN = [sys.executable, "-m", "engine.cli.main"]
RULES = (20, 100, 1000)
LINES, STORM_LINES, SMALL_LINES = 1_000_000, 100_000, 200
SLOW = {"sec": 10_000, "python re": 10_000, "grep -E": 100_000}  # lines: these take minutes or hours for all
TICK_S = 0.01  # what the system counts CPU in
RUNS, SHORT_RUNS = 5, 10
WRAPPED = (("compose",), ("kubectl",), ("cri",), ("journal",), ("docker json",), ("ecs",), ("logstash",))
WRAPPED_LINES = 100_000
MEMORY_LINES = (60_000, 600_000, 6_000_000)


def measure(folder: Path) -> None:
    """Measure speed and print."""
    log = corpus(folder, LINES, QUIET_RATE)
    plans = [plan_of(count, folder) for count in RULES]
    costs = in_turn([(plan, log) for plan in plans], RUNS)
    for count, plan, cost in zip(RULES, plans, costs, strict=True):
        _compare(folder, log, plan, count, cost)
    say("result", f"1,000 rules take {costs[-1] / costs[0]:.2f} times what 20 take (in turn)")
    _hits(folder, plan_of(1000, folder))
    measure_wrapped(folder)
    path = corpus(folder, SMALL_LINES, QUIET_RATE)
    _tocsin(path)  # fills the rule cache
    say("command", f"tocsin scan {path.name} --format json")
    say("result", f"{min(_tocsin(path).cpu for _ in range(5)):.2f} s of CPU, start to answer (best of 5, rules cached)")


def measure_wrapped(folder: Path) -> None:
    """Measure what wrappers and JSON layouts cost, with 100 rules, and print."""
    plan = plan_of(RULES[1], folder)
    log = corpus(folder, WRAPPED_LINES, QUIET_RATE)
    [plain] = bare(plan, log)
    say("measured", f"plain: {plain:.1f} s of CPU per million lines")
    for chain in WRAPPED:
        [cost] = bare(plan, _wrapped(log, chain, folder))
        say("result", f"{' in '.join(chain)}: {cost:.1f} s of CPU per million lines, {cost / plain:.1f} times plain")


def measure_memory(folder: Path) -> None:
    """Measure how much memory a scan takes at most, and print."""
    for count in MEMORY_LINES:
        path = corpus(folder, count, QUIET_RATE)
        used = _tocsin(path)
        say("command", f"tocsin scan {path.name} --format json")
        say("result", f"{path.stat().st_size / 1e6:,.0f} MB: {used.peak_mb:.0f} MB at most, {used.cpu:.1f} s of CPU")
        path.unlink()


def bare(plan: Plan, *logs: Path, runs: int = RUNS) -> list[float]:
    """Return the CPU seconds per million lines that it costs to read each of `logs` and match it (see in_turn)."""
    return in_turn([(plan, log) for log in logs], runs)


def in_turn(scans: Sequence[tuple[Plan, Path]], runs: int) -> list[float]:
    """Return the CPU seconds per million lines of each scan: the cheapest of `runs`, which take turns, as the machine is not
    always equally fast."""
    matchers = {id(plan): Matcher(plan, DiskCache()) for plan, _ in scans}
    warm: dict[int, Bounded] = {}  # by number of the scan: a run uses what the one before has learnt
    costs: list[list[float]] = [[] for _ in scans]
    for _ in range(runs):
        for number, (plan, log) in enumerate(scans):
            warm[number], cost = read_once(plan, matchers[id(plan)], log, warm.get(number))
            costs[number].append(cost)
    return [min(of_scan) for of_scan in costs]


def read_once(plan: Plan, matcher: Matcher, log: Path, before: Bounded | None) -> tuple[Bounded, float]:
    """Read and match `log` as a scan does; `before` has read under the same plan, None when nothing was learnt yet.

    Returns the reader, and the CPU seconds per million lines.
    """
    bounded = Bounded(plan, matcher, lambda event, matches: None, (ERROR_SIGN,))
    if before is not None:
        bounded.go_on_with(before)
    began = time.process_time()
    for _item in bounded.read(read_chunks(str(log))):
        pass
    return bounded, (time.process_time() - began) / bounded.lines * 1e6


def _wrapped(log: Path, chain: Sequence[str], folder: Path) -> Path:
    """Write the lines of `log` behind the wrappers `chain` into a file of `folder` and return it."""
    path = folder / "wrapped.log"
    with log.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
        out.writelines(f"{row}\n" for row in wrapped((line.rstrip("\n") for line in lines), chain, Random(1)))
    return path


def _compare(folder: Path, log: Path, plan: Plan, count: int, ours: float) -> None:
    """Print what a scan costs with `plan`, and what other tools do."""
    say("measured", f"{count:>5} rules: tocsin {ours:.2f} s of CPU per million lines")
    regexes = expressions(plan)
    for name, cpu_of in tools().items():
        lines, runs = SLOW.get(name, LINES), 1 if name in SLOW else RUNS
        start, whole = (min(cpu_of(head(log, some, folder), regexes, folder) for _ in range(runs)) for some in (1, lines))
        theirs = max(whole - start, TICK_S) / lines * 1e6
        spent = f"{name} {theirs:.2f} s (from {lines:,} lines) and {start:.2f} s to start"
        say("result", f"{count:>5} rules: {spent}; tocsin has {theirs / ours:.2f} times its speed")


def _hits(folder: Path, plan: Plan) -> None:
    logs = [corpus(folder, STORM_LINES, rate) for rate in (QUIET_RATE, COMMON_RATE, STORM_RATE)]
    quiet, common, storm = bare(plan, *logs, runs=SHORT_RUNS)
    for name, cost in (("1% of the events hits", common), ("a storm, 30% of the events hits", storm)):
        say("result", f"{name}: {cost:.1f} s of CPU per million lines, {cost / quiet:.1f} times the quiet ones ({quiet:.1f})")


class _Used:
    """What a process took: CPU in seconds, and its memory at the most in MB."""

    def __init__(self, usage: resource.struct_rusage) -> None:
        self.cpu, self.peak_mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _tocsin(path: Path) -> _Used:
    return _run([*TOCSIN, "scan", str(path), "--format", "json"])


def _run(command: Sequence[str]) -> _Used:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it has been waited for
    return _Used(usage)
