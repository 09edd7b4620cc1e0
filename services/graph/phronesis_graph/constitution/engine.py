"""The engine of algorithms: each computation in its own process; which ones work is found out at the start."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, Protocol

from phronesis_bus import Bus
from phronesis_contracts import ServiceError, Unavailable

from .projection import Projection, build_projection

SEED = 7
"""Of every choice by chance, so that the same graph gives the same answer."""
DAMPING = 0.85
"""Of PageRank (Page et al. 1999)."""
MOST_EXACT = 5_000
"""Nodes up to which betweenness is exact; its time grows with nodes times relationships."""
PIVOTS = 1_000
"""Nodes beyond that, from which it is estimated (Brandes and Pich 2007)."""


class Algorithm(StrEnum):
    PAGERANK = "pagerank"
    BETWEENNESS = "betweenness"
    COMMUNITIES = "communities"


@dataclass(frozen=True)
class AlgorithmOutput:
    """By node its score, or the number of its community."""

    values: Sequence[float]
    modularity: float = 0.0
    pivots: int | None = None
    kilobytes: int = 0
    """Memory that the computation took at most, where that is known."""


class Engine(Protocol):
    """An engine. Two nodes that are joined more than once are joined; PageRank alone minds the direction."""

    @property
    def name(self) -> Literal["gds", "service"]:
        """What it is called in answers."""

    async def compute(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
        """Compute an algorithm over a projection that has nodes. Raises `Unavailable`: it cannot."""


log = logging.getLogger(__name__)

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_SAMPLE = build_projection(
    {"a": "goal", "b": "goal", "c": "vision"}, ("SERVES",), [("a", "SERVES", "c"), ("b", "SERVES", "c")], _NOW
)
SHORTEST_PATH_SOURCE = "shortest_path by service"


class EngineAvailability:
    """What an engine can do."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: tuple[str, ...] = (SHORTEST_PATH_SOURCE,)

    def start(self, bus: Bus) -> None:
        """Find out in the background; a process that ends meanwhile does not wait for it."""
        task = asyncio.create_task(self.look(), name="graph-algorithms")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        bus.on_stop(stop)

    async def look(self) -> None:
        """Compute each algorithm over three nodes; what fails is logged and not told."""
        for algorithm in Algorithm:
            try:
                await self._engine.compute(algorithm, _SAMPLE)
            except ServiceError as error:
                log.error("%s cannot be computed by %s: %s", algorithm, self._engine.name, error.code)
            else:
                self._found += (f"{algorithm} by {self._engine.name}",)
        log.info("algorithms: %s", ", ".join(self._found))

    def found(self) -> tuple[str, ...]:
        return self._found


_AT_ONCE = 2
"""Computations side by side; the others wait, for as long as their callers do."""
_PROGRAM = (sys.executable, "-I", "-m", "phronesis_graph.constitution.algorithm_worker")
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
_CANNOT = "the algorithm could not be computed"


class ProcessEngine:
    name: Literal["gds", "service"] = "service"

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def compute(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
        """The process ends with the call, whatever becomes of it."""
        job = await asyncio.to_thread(_encode_job, algorithm, over)
        async with self._slots:
            result = await _run_process(job)
        return await asyncio.to_thread(_decode_output, result)


async def _run_process(job: bytes) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            *_PROGRAM, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=_ENVIRONMENT, cwd="/"
        )
    except OSError as error:
        raise Unavailable(_CANNOT, retry_after=1) from error
    try:
        result, said = await process.communicate(job)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        log.error("the process that computes ended with %s: %s", process.returncode, said.decode(errors="replace")[-2000:])
        raise Unavailable(_CANNOT, retry_after=1)
    return result


def _encode_job(algorithm: Algorithm, over: Projection) -> bytes:
    job = {
        "algorithm": algorithm.value,
        "nodes": len(over.ids),
        "sources": [source for source, _, _ in over.links],
        "targets": [target for _, target, _ in over.links],
        "seed": SEED,
        "damping": DAMPING,
        "exact": MOST_EXACT,
        "most_pivots": PIVOTS,
    }
    return json.dumps(job).encode()


def _decode_output(result: bytes) -> AlgorithmOutput:
    return AlgorithmOutput(**json.loads(result))
