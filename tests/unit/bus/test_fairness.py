"""Who is worked on next, who has to wait, and who is refused."""

from __future__ import annotations

from phronesis_bus.fairness import FairQueue, Rates, Verdict


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(queue: FairQueue[str], many: int) -> list[str]:
    """The next requests, each ended before the next one begins."""
    found = []
    for _ in range(many):
        next_one = queue.take()
        assert next_one is not None
        tenant, item = next_one
        queue.done(tenant)
        found.append(item)
    return found


def held(queue: FairQueue[str]) -> list[str]:
    """All requests that get a slot now."""
    found = []
    while (next_one := queue.take()) is not None:
        found.append(next_one[1])
    return found


def test_a_tenant_that_comes_late_waits_behind_one_request_of_each_other_tenant() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for n in range(8):
        queue.put("flood", "ann", f"flood {n}")
    queue.put("calm", "bob", "calm 0")
    assert taken(queue, 3) == ["flood 0", "calm 0", "flood 1"]


def test_users_of_a_tenant_take_turns() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for n in range(3):
        queue.put("acme", "ann", f"ann {n}")
    for n in range(2):
        queue.put("acme", "bob", f"bob {n}")
    assert taken(queue, 5) == ["ann 0", "bob 0", "ann 1", "bob 1", "ann 2"]


def test_a_tenant_of_weight_three_has_three_turns_to_one() -> None:
    queue: FairQueue[str] = FairQueue(2, weights={"big": 3})
    for _ in range(12):
        queue.put("big", "ann", "big")
        queue.put("small", "bob", "small")
    assert sorted(taken(queue, 8)) == ["big"] * 6 + ["small"] * 2


def test_nobody_saves_turns_up_while_it_asks_nothing() -> None:
    queue: FairQueue[str] = FairQueue(1)
    queue.put("quiet", "ann", "quiet")
    taken(queue, 1)
    for _ in range(10):
        queue.put("busy", "bob", "busy")
    taken(queue, 6)
    for _ in range(4):
        queue.put("quiet", "ann", "quiet")
    assert sorted(taken(queue, 4)) == ["busy", "busy", "quiet", "quiet"]


def test_a_tenant_alone_has_every_slot_and_beside_another_its_share() -> None:
    clock = Clock()
    alone: FairQueue[str] = FairQueue(4, share=0.75, clock=clock)
    for _ in range(6):
        alone.put("acme", "ann", "acme")
    assert held(alone) == ["acme"] * 4
    beside: FairQueue[str] = FairQueue(4, share=0.75, clock=clock)
    beside.put("other", "bob", "other")
    taken(beside, 1)
    for _ in range(6):
        beside.put("acme", "ann", "acme")
    assert held(beside) == ["acme"] * 3, "the other one may ask again"
    clock.now = 61.0
    beside.put("acme", "ann", "acme")
    assert held(beside) == ["acme"], "it asked nothing for a minute"


def test_what_is_over_a_tenants_room_goes_and_it_is_the_newest_of_the_user_with_the_most() -> None:
    queue: FairQueue[str] = FairQueue(1)
    pushed = [queue.put("acme", "ann", f"ann {n}") for n in range(17)]
    assert pushed == [None] * 16 + ["ann 16"]
    assert queue.put("acme", "bob", "bob 0") == "ann 15", "whoever floods makes room for others"
    assert taken(queue, 2) == ["ann 0", "bob 0"]


def test_a_flood_of_tenants_takes_no_room_from_one_that_asks_a_little() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for tenant in ("one", "two"):
        for n in range(16):
            assert queue.put(tenant, "ann", f"{tenant} {n}") is None
    assert queue.put("calm", "bob", "calm 0") == "one 15"


def test_a_key_over_its_rate_is_refused_and_far_over_it_dropped_until_it_has_waited() -> None:
    clock = Clock()
    rates = Rates(10, 3, clock)
    found = [rates.check("k") for _ in range(8)]
    assert found == [Verdict.PASS] * 3 + [Verdict.REFUSE] * 3 + [Verdict.DROP] * 2
    assert rates.check("another") is Verdict.PASS
    clock.now = 0.1
    assert [rates.check("k") for _ in range(3)] == [Verdict.PASS, Verdict.REFUSE, Verdict.DROP]


def test_a_rate_of_zero_is_no_limit() -> None:
    rates = Rates(0, 1)
    assert {rates.check("k") for _ in range(100)} == {Verdict.PASS}
