"""How long a name waits after failures, and whom it makes wait."""

from engine.web.attempts import OF_ALL, OF_NAME, OF_NAME_AND_ADDRESS, WITHIN_S, LoginAttempts


def test_a_name_waits_after_a_few_failures_until_they_are_old() -> None:
    attempts = LoginAttempts()
    for second in range(OF_NAME_AND_ADDRESS):
        assert attempts.wait_s("mina", "a", second) == 0
        attempts.count("mina", "a", second)
    assert attempts.wait_s("mina", "a", 10) == WITHIN_S - 10
    assert attempts.wait_s("mina", "a", WITHIN_S) == 0
    assert attempts.wait_s("mina", "b", 10) == attempts.wait_s("jun", "a", 10) == 0


def test_a_success_forgets_the_failures_of_the_name_from_there() -> None:
    attempts = LoginAttempts()
    for _ in range(OF_NAME_AND_ADDRESS):
        attempts.count("mina", "a", 0)
    attempts.succeeded("mina", "a")
    assert attempts.wait_s("mina", "a", 0) == 0
    for _ in range(1000):
        attempts.count("mina", "a", 1)
        attempts.succeeded("mina", "a")
    assert attempts.wait_s("mina", "b", 1) == 0, "who signs in often keeps nobody out"


def test_many_addresses_and_many_names_do_not_help() -> None:
    attempts = LoginAttempts()
    for n in range(OF_NAME):
        attempts.count("mina", f"address {n}", 0)
    assert attempts.wait_s("mina", "a new one", 0) == WITHIN_S
    assert attempts.wait_s("jun", "a new one", 0) == 0
    for n in range(OF_ALL):
        attempts.count(f"name {n}", f"address {n}", 0)
    assert attempts.wait_s("jun", "a new one", 0) == WITHIN_S


def test_old_failures_take_no_memory_for_ever() -> None:
    attempts = LoginAttempts()
    for n in range(30_000):
        attempts.count(f"name {n}", "a", n)
    assert len(attempts._failures) < 11_000
