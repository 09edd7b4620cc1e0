"""The turn core on models of Postgres and NATS: whatever goes wrong, by whatever seed, nothing is lost and nothing doubled."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter

import pytest

from .loop import Process, SimulatedLoop, Stuck, seeded
from .report import FAULTS
from .seeds import run_batch

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
