"""Free slots of a worker, which a turn may have at the moment of its acceptance."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextvars import ContextVar
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from phronesis_bus import Bus
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import SubmitTurn, TaskOrder
from phronesis_orchestrator.turns.run import Patience, Worker
from phronesis_orchestrator.turns.turn import Claim, Offer, Wait

ANN, BOB = Principal(tenant="acme", user="ann"), Principal(tenant="other", user="bob")
HELLO = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
TASK = HELLO.model_copy(update={"task": TaskOrder()})
inherited: ContextVar[str] = ContextVar("inherited", default="the worker's own")


def claim_of(who: Principal, id: str = "t1") -> Claim:
    return Claim(id, "c1", who, "dialogue", HELLO, 1, 1, 1, False, False, datetime.now(UTC), None, None)


class Queue:
    """A queue in which nothing waits."""

    def __init__(self) -> None:
        self.given_back = asyncio.Queue[tuple[str, bool]]()

    async def claim(self, worker: str, limit: int, lease: float, *more: Any) -> list[Claim]:
        return []

    async def renew(self, worker: str, claims: Collection[Claim], lease: float) -> set[str]:
        return {claim.turn_id for claim in claims}

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        self.given_back.put_nowait((claim.turn_id, counts))

    async def put_back(self, claim: Claim, wait: Wait, delay: float) -> bool:
        return True


class Desk:
    """A worker whose turns run until they are told to end."""

    def __init__(self, slots: int = 2, *, connected: bool = True) -> None:
        self.queue, self.ran = Queue(), asyncio.Queue[tuple[str, str]]()
        self.bus = SimpleNamespace(process="w", connected=connected)
        self.worker = Worker(cast(Bus, self.bus), self.queue, self.run, slots, 15, Patience(self.show))

    async def run(self, claim: Claim) -> None:
        self.ran.put_nowait((claim.turn_id, inherited.get()))
        await asyncio.Event().wait()

    async def show(self, who: Principal, line: Any) -> None:
        return None


async def test_a_free_slot_is_offered_to_as_many_turns_as_there_are_slots() -> None:
    worker = Desk(slots=2).worker
    with worker.hold(ANN, HELLO) as first, worker.hold(ANN, HELLO) as second, worker.hold(ANN, HELLO) as third:
        assert (first, second, third) == (Offer("w", 15), Offer("w", 15), None)
    with worker.hold(ANN, HELLO) as again:
        assert again == Offer("w", 15)


async def test_a_turn_that_runs_takes_its_slot() -> None:
    desk = Desk(slots=1)
    with desk.worker.hold(ANN, HELLO):
        desk.worker.begin(claim_of(ANN))
    with desk.worker.hold(BOB, HELLO) as offer:
        assert offer is None
    await desk.worker.stop()


async def test_no_slot_is_offered_to_a_background_task_or_while_the_bus_is_away() -> None:
    with Desk().worker.hold(ANN, TASK) as to_a_task, Desk(connected=False).worker.hold(ANN, HELLO) as without_bus:
        assert (to_a_task, without_bus) == (None, None)


async def test_a_tenant_that_has_its_share_of_the_slots_is_offered_no_more() -> None:
    desk = Desk(slots=4)
    for number in range(3):
        desk.worker.begin(claim_of(ANN, f"t{number}"))
    for _ in range(100):
        desk.worker._contention.note(0.001, ["acme", "acme", "acme", "other"])
    assert desk.worker._contention.most == ("acme", 3)
    with desk.worker.hold(ANN, HELLO) as loud, desk.worker.hold(BOB, HELLO) as quiet:
        assert (loud, quiet) == (None, Offer("w", 15))
    await desk.worker.stop()


async def test_a_turn_inherits_nothing_of_the_work_that_it_was_accepted_in() -> None:
    desk = Desk()
    desk.worker.start()
    inherited.set("the intake's")
    desk.worker.begin(claim_of(ANN))
    assert await desk.ran.get() == ("t1", "the worker's own")
    await desk.worker.stop()


async def test_a_turn_that_is_accepted_while_the_worker_stops_is_given_back_uncounted() -> None:
    desk = Desk()
    with desk.worker.hold(ANN, HELLO) as offer:
        await desk.worker.stop()
        assert offer is not None
        desk.worker.begin(claim_of(ANN))
    async with asyncio.timeout(5):
        assert await desk.queue.given_back.get() == ("t1", False)
    with desk.worker.hold(ANN, HELLO) as none:
        assert none is None
