"""The turn core on models of Postgres and NATS: whatever goes wrong, by whatever seed, nothing is lost and nothing doubled."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from uuid import uuid4

import asyncpg
import pytest

from phronesis_contracts import KeyReused, Principal
from phronesis_contracts.orchestrator import Problem, TurnProgress

from .clients import Submitted
from .loop import Process, SimulatedLoop, Stuck, seeded
from .options import draw_options
from .postgres import Connection, Server, Statement
from .report import FAULTS
from .seeds import run_batch
from .world import World

SEEDS, GROUPS = 300, 6


@pytest.mark.req("D-018", "D-019", "D-020")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_seed_breaks_what_turns_are_promised(group: int) -> None:
    """The first seeds of those that `make simulate` runs. `python -m tests.simulation --replay SEED` tells one's story."""
    outcomes = run_batch(range(group, SEEDS, GROUPS))
    assert [(outcome.seed, outcome.violation) for outcome in outcomes if outcome.violation] == []
    happened = Counter[str]()
    for outcome in outcomes:
        happened.update(outcome.counts)
    # All that may go wrong does, and turns end all the same: a model in which nothing happens proves nothing.
    assert {what for what in FAULTS if happened[what] < 5} == set()
    assert happened["turn completed"] > 3 * len(outcomes)


def test_a_seed_is_replayed_exactly_in_another_process() -> None:
    tell = "from tests.simulation.world import run_seed as r; print([(o.digest, o.steps) for o in map(r, range(8))])"
    told = [
        subprocess.run(
            [sys.executable, "-c", tell],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            text=True,
        ).stdout
        for hashes in ("1", "2")
    ]
    assert told[0] == told[1]
    assert told[0].count("(") == 8


def test_two_seeds_are_two_stories() -> None:
    one, other = run_batch((1, 2))
    assert one.digest != other.digest


def in_loop(loop: SimulatedLoop, main: object) -> None:
    with seeded(loop):
        loop.run(main, 100.0)  # type: ignore[arg-type]
        loop.close_all()


def test_time_passes_only_where_everybody_waits() -> None:
    loop, seen = SimulatedLoop(1, 1000), []

    async def main() -> None:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((seconds, loop.time()))

        await asyncio.gather(*map(wait, (50.0, 0.5, 7.0)))

    in_loop(loop, main())
    assert seen == [(0.5, 0.5), (7.0, 7.0), (50.0, 50.0)]


def test_nothing_of_a_killed_process_runs_any_more() -> None:
    loop, seen = SimulatedLoop(1, 1000), []
    process = Process("victim")

    async def work() -> None:
        try:
            while True:
                seen.append(loop.time())
                await asyncio.sleep(1)
        finally:
            if loop.time() < 9:
                seen.append(-1.0)

    async def main() -> None:
        loop.create_task(work(), context=process.context.copy())
        await asyncio.sleep(2.5)
        loop.kill(process)
        await asyncio.sleep(10)

    in_loop(loop, main())
    assert seen == [0.0, 1.0, 2.0]


def test_a_paused_process_is_late_and_goes_on() -> None:
    loop, seen = SimulatedLoop(1, 1000), []
    process = Process("sleeper")

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen.append(loop.time())

    async def main() -> None:
        loop.create_task(work(), context=process.context.copy())
        await asyncio.sleep(1.5)
        loop.pause(process, 5)
        await asyncio.sleep(20)

    in_loop(loop, main())
    assert seen == [1.0, 6.5, 7.5]


def test_a_run_that_waits_for_nothing_is_stuck() -> None:
    loop = SimulatedLoop(1, 1000)

    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        in_loop(loop, main())


def test_a_callback_that_fails_ends_the_run_before_it_is_stuck() -> None:
    loop = SimulatedLoop(1, 1000)

    async def main() -> None:
        loop.call_later(1.0, {}.pop, "nothing")
        await loop.create_future()

    with pytest.raises(KeyError, match="nothing"):
        in_loop(loop, main())


def test_a_message_whose_key_was_taken_is_of_the_conversation_that_it_was_sent_to() -> None:
    loop = SimulatedLoop(1, 1000)
    world, id = World(loop, draw_options(loop)), str(uuid4())
    sent = world.clients.submitted[id] = Submitted(id, Principal(tenant="t", user="u"), "m 0/1", conversation="its own")
    refused = TurnProgress(turn_id=id, kind="refused", problem=Problem(code=KeyReused.code, detail="", status=409))
    world.clients.hear("", refused.model_dump_json().encode())
    assert sent.answer is not None
    assert (sent.answer.kind, sent.conversation) == ("accepted", "its own")


@pytest.fixture
async def server() -> Server:
    """A model of Postgres with a table of letters, each at a place of its own."""
    insert = Statement(lambda at, id, place: at.insert("letters", (id,), letter(id, place), [("place", (place,))]))
    move = Statement(lambda at, id, place: at.update("letters", (id,), [("place", (place,))], place=place))
    return Server({"INSERT": insert, "MOVE": move}, time.time)


def letter(id: str, place: int) -> dict[str, object]:
    return {"id": id, "tenant": "t", "place": place}


async def began(server: Server) -> Connection:
    connection = Connection(server, None)
    await connection.execute("BEGIN; SET LOCAL phronesis.tenant = 't'")
    return connection


async def test_a_row_is_moved_to_no_place_that_another_has(server: Server) -> None:
    one = await began(server)
    for id, place in (("a", 1), ("b", 2)):
        await one.execute("INSERT", id, place)
    await one.execute("MOVE", "b", 2)
    await one.execute("COMMIT")
    other = await began(server)
    with pytest.raises(asyncpg.UniqueViolationError):
        await other.execute("MOVE", "b", 1)


async def test_a_row_that_moves_waits_for_whoever_takes_the_place(server: Server) -> None:
    one, other = await began(server), await began(server)
    await one.execute("INSERT", "a", 1)
    await other.execute("INSERT", "b", 2)
    moving = asyncio.create_task(other.execute("MOVE", "b", 1))
    await one.execute("MOVE", "a", 3)
    assert not moving.done()
    await one.execute("COMMIT")
    assert await moving == "DONE 1"


async def test_a_statement_that_the_model_does_not_know_fails_for_whoever_asks(server: Server) -> None:
    connection = await began(server)
    with pytest.raises(NotImplementedError, match="SELECT 2"):
        await connection.execute("SELECT 2")
