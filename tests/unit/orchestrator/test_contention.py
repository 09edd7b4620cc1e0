"""How many turns of one tenant run in a process that has no time to spare."""

from __future__ import annotations

from phronesis_orchestrator.turns.run import Contention

BOTH = [*["loud"] * 24, *["quiet"] * 8]


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_tenant_alone_has_all_slots() -> None:
    contention = Contention(32, Clock())
    for _ in range(100):
        contention.note(0.1, ["loud"] * 32)
    assert contention.most is None


def test_in_a_process_with_time_to_spare_a_quarter_of_the_slots_is_kept_for_others() -> None:
    contention = Contention(32, Clock())
    for _ in range(100):
        contention.note(0.001, BOTH)
    assert contention.most == ("loud", 24)


def test_in_a_process_that_is_late_the_tenant_with_the_most_may_have_as_many_as_the_next() -> None:
    contention = Contention(32, Clock())
    for _ in range(200):
        contention.note(0.1, [*BOTH, "third"])
    assert contention.most == ("loud", 8)


def test_slots_are_kept_for_a_tenant_that_was_here_lately_and_not_for_one_that_was_here_long_ago() -> None:
    clock = Clock()
    contention = Contention(32, clock)
    for running in (*[BOTH] * 100, *[["loud"] * 24] * 100):
        contention.note(0.1, running)
    assert contention.most == ("loud", 24)
    clock.now += 601
    contention.note(0.1, ["loud"] * 24)
    assert contention.most is None


def test_a_process_counts_as_late_for_a_while_after_it_was() -> None:
    clock = Clock()
    contention = Contention(32, clock)
    for late in (*[0.1] * 200, *[0.0] * 100):
        contention.note(late, BOTH)
    clock.now += 1.9
    assert contention.most == ("loud", 8)
    clock.now += 0.2
    assert contention.most == ("loud", 24)
