"""The process that computes: what it gives, and that it is gone when nobody waits for it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from phronesis_contracts import Unavailable
from phronesis_graph.constitution.engine import Algorithm, ProcessEngine
from phronesis_graph.constitution.projection import Projection, build_projection
from tests.support.bus import eventually
from tests.support.constitutions import DAWN
from tests.unit.graph.fakes_constitution import Engine


def random_graph(nodes: int, links: int) -> Projection:
    chance = Random(5)
    ends = [(f"n{chance.randrange(nodes)}", "SERVES", f"n{chance.randrange(nodes)}") for _ in range(links)]
    return build_projection({f"n{place}": "goal" for place in range(nodes)}, ("SERVES",), ends, DAWN)


def computing() -> list[str]:
    """Processes of this one that compute."""
    children = [id for task in Path(f"/proc/{os.getpid()}/task").iterdir() for id in (task / "children").read_text().split()]
    return [id for id in children if b"constitution.algorithm_worker" in _command(id)]


def _command(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.req("O-216", "O-220")
@pytest.mark.parametrize("algorithm", Algorithm)
async def test_the_process_gives_what_its_libraries_give_and_tells_its_memory(algorithm: Algorithm) -> None:
    over = random_graph(60, 150)
    found = await ProcessEngine().compute(algorithm, over)
    assert replace(found, kilobytes=0) == Engine().of(algorithm, over)
    assert found.kilobytes > 10_000


async def test_the_memory_that_is_told_is_the_computation_s_and_not_the_service_s() -> None:
    taken = bytearray(b"x" * 200_000_000)
    found = await ProcessEngine().compute(Algorithm.PAGERANK, random_graph(60, 150))
    assert found.kilobytes < len(taken) / 1_000


async def test_a_computation_that_nobody_waits_for_is_ended() -> None:
    task = asyncio.create_task(ProcessEngine().compute(Algorithm.BETWEENNESS, random_graph(5_000, 60_000)))
    await eventually(lambda: bool(computing()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert computing() == []


async def test_a_process_that_fails_is_an_error_that_may_be_tried_again() -> None:
    broken = replace(random_graph(3, 3), links=[(0, -1, 0)])
    with pytest.raises(Unavailable, match="could not be computed"):
        await ProcessEngine().compute(Algorithm.PAGERANK, broken)
