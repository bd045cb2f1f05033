"""The clock of waits: it goes on evenly whatever the wall clock does, and says once what that one did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from engine.clock import SETTLED_S, Jump, SteadyClock, uptime_s, wall

NOON = datetime(2023, 2, 3, 12, tzinfo=UTC)
YEAR = timedelta(days=365)


@dataclass
class Machine:
    """Two clocks: one that is set by people, and one that is not."""

    passed_s: float = 0.0
    off: timedelta = timedelta(0)

    def wall_time(self) -> datetime:
        return NOON + timedelta(seconds=self.passed_s) + self.off

    def elapsed_s(self) -> float:
        return 1e6 + self.passed_s


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> SteadyClock:
    return SteadyClock(machine.wall_time, machine.elapsed_s)


def test_it_is_the_wall_clock_while_nobody_sets_that(machine: Machine, clock: SteadyClock) -> None:
    for machine.passed_s in (0, 1.5, 86400):
        assert clock.check() is None
        assert clock.now() == machine.wall_time()


@pytest.mark.parametrize("by", [YEAR, -YEAR, timedelta(seconds=3)])
def test_a_jump_is_noticed_once_and_waits_do_not_see_it(machine: Machine, clock: SteadyClock, by: timedelta) -> None:
    machine.off = by
    assert clock.check() == Jump(by)
    for machine.passed_s in (1, 60, SETTLED_S - 1):
        assert clock.check() is None
        assert clock.now() == NOON + timedelta(seconds=machine.passed_s)


def test_a_jump_that_is_taken_back_leaves_nothing(machine: Machine, clock: SteadyClock) -> None:
    machine.off = YEAR
    clock.check()
    machine.off = timedelta(0)
    machine.passed_s = SETTLED_S + 1
    assert clock.check() is None
    assert clock.now() == machine.wall_time()
    machine.off = YEAR
    assert clock.check() == Jump(YEAR), "the next one is one of its own"


def test_a_clock_that_stays_where_it_went_is_believed(machine: Machine, clock: SteadyClock) -> None:
    machine.off = -YEAR
    clock.check()
    machine.passed_s = SETTLED_S
    assert clock.check() == Jump(-YEAR, adopted=True)
    assert clock.now() == machine.wall_time()
    assert clock.check() is None


def test_another_jump_begins_its_own_time_of_trial(machine: Machine, clock: SteadyClock) -> None:
    machine.off = YEAR
    clock.check()
    machine.passed_s, machine.off = SETTLED_S - 1, 2 * YEAR
    assert clock.check() == Jump(2 * YEAR)
    machine.passed_s = SETTLED_S + 1
    assert clock.check() is None


def test_small_corrections_are_followed_without_a_word(machine: Machine, clock: SteadyClock) -> None:
    for second in range(100):
        machine.passed_s, machine.off = second, timedelta(seconds=second * 0.5)
        assert clock.check() is None
        assert clock.now() == machine.wall_time()


def test_a_look_that_the_machine_interrupted_is_no_jump(machine: Machine) -> None:
    def interrupted() -> datetime:
        machine.passed_s += 30
        return machine.wall_time()

    clock = SteadyClock(interrupted, machine.elapsed_s)
    assert clock.check() is None


@pytest.mark.parametrize(
    ("jump", "sentence"),
    [
        (Jump(YEAR), "went forward by 365 d: waits go on as if it had not; if it stays there for 10 min it is believed"),
        (Jump(-YEAR), "went back by 365 d: waits"),
        (Jump(YEAR, adopted=True), "has stayed 365 d forward of where it was and is believed now"),
    ],
)
def test_it_is_one_sentence(jump: Jump, sentence: str) -> None:
    assert sentence in str(jump)


def test_the_machines_own_clocks_fit_it() -> None:
    before, began_s = wall(), uptime_s()
    clock = SteadyClock()
    assert clock.check() is None
    assert before <= clock.now() <= wall() + timedelta(seconds=1)
    assert uptime_s() >= began_s
