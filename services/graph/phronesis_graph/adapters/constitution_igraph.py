"""Algorithms by igraph, each computation in a process of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from typing import Literal

from phronesis_contracts import Unavailable

from ..constitution.engines import DAMPING, EXACT, PIVOTS, SEED, Algorithm, Computed
from ..constitution.projection import Projection

log = logging.getLogger(__name__)

_AT_ONCE = 2
"""Computations side by side; the others wait, for as long as their callers do."""
_PROGRAM = (sys.executable, "-I", "-m", "phronesis_graph.constitution.computing")
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
_CANNOT = "the algorithm could not be computed"


class IgraphEngine:
    """The `Engine` over igraph."""

    name: Literal["gds", "igraph"] = "igraph"

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def compute(self, algorithm: Algorithm, over: Projection) -> Computed:
        """Compute an algorithm; see the port. The process ends with the call, whatever becomes of it."""
        job = await asyncio.to_thread(_job, algorithm, over)
        async with self._slots:
            result = await _run(job)
        return await asyncio.to_thread(_computed, result)


async def _run(job: bytes) -> bytes:
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


def _job(algorithm: Algorithm, over: Projection) -> bytes:
    job = {
        "algorithm": algorithm.value,
        "nodes": len(over.ids),
        "sources": [source for source, _, _ in over.links],
        "targets": [target for _, target, _ in over.links],
        "seed": SEED,
        "damping": DAMPING,
        "exact": EXACT,
        "most_pivots": PIVOTS,
    }
    return json.dumps(job).encode()


def _computed(result: bytes) -> Computed:
    return Computed(**json.loads(result))
