"""How many turns of one tenant run in a process that has no time to spare."""

from __future__ import annotations

from phronesis_orchestrator.turns.run import Contention


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def late(clock: Clock) -> Contention:
    contention = Contention(clock)
    for _ in range(50):
        contention.note_late(0.1)
    return contention


def test_a_tenant_alone_has_all_slots() -> None:
    contention = late(Clock())
    contention.note_running(["loud"] * 32)
    assert contention.most is None


def test_in_a_process_with_time_to_spare_the_slots_alone_say_it() -> None:
    contention = Contention(Clock())
    contention.note_running([*["loud"] * 24, *["quiet"] * 8])
    assert contention.most is None


def test_in_a_process_that_is_late_a_tenant_has_one_turn_more_than_another() -> None:
    contention = late(Clock())
    contention.note_running([*["loud"] * 24, *["quiet"] * 8, "third"])
    assert contention.most == 9


def test_what_another_had_a_moment_ago_counts_and_what_it_had_before_does_not() -> None:
    clock = Clock()
    contention = late(clock)
    contention.note_running([*["loud"] * 24, *["quiet"] * 8])
    clock.now += 1
    contention.note_running(["loud"] * 24)
    assert contention.most == 9
    clock.now += 1.5
    contention.note_late(0.1)
    contention.note_running(["loud"] * 24)
    assert contention.most is None


def test_a_process_counts_as_late_for_a_while_after_it_was() -> None:
    clock = Clock()
    contention = late(clock)
    running = [*["loud"] * 24, *["quiet"] * 8]
    for _ in range(100):
        contention.note_late(0.0)
    clock.now += 1.9
    contention.note_running(running)
    assert contention.most == 9
    clock.now += 0.2
    contention.note_running(running)
    assert contention.most is None
