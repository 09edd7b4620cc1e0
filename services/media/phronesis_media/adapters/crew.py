"""Reading processes that stay warm: kept while they are sound, replaced when one fails or has had its share."""

from __future__ import annotations

import asyncio
from typing import Any

from ..reading.jobs import Job
from .workers import Failed, Worker

_JOBS = 100
"""Media that one process reads before it is replaced: what leaks in a parser does not add up."""


class Crew:
    """The processes of one kind of job, started when they are needed.

    Args:
        memory: bytes of address space of each.
        most: how many there may be.
        idle: seconds after which one with nothing to do is ended.
        models: the module whose models each loads when it starts.
    """

    def __init__(self, memory: int, most: int, idle: float, models: str | None = None) -> None:
        self._memory = memory
        self._models = models
        self._starting: list[asyncio.Task[Worker]] = []
        self._slots = asyncio.Semaphore(most)
        self._idle_seconds = idle
        self._idle: list[Worker] = []

    async def ask(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        """The answer of a free process; raises as `Worker.ask` does.

        A process that has read other media before may carry their damage, so a crash in it, or its lack of memory, is not
        held against this medium: a new process tries once more.
        """
        async with self._slots:
            worker = await self._free()
            fresh = worker.jobs == 0
            try:
                return await self._asked(worker, job, data, most)
            except Failed as failed:
                if fresh or failed.args[0] not in ("crash", "memory"):
                    raise
            return await self._asked(await self._new(), job, data, most)

    async def close(self) -> None:
        """End the processes that have nothing to do or are starting."""
        for starting in self._starting:
            starting.cancel()
        for made in await asyncio.gather(*self._starting, return_exceptions=True):
            if isinstance(made, Worker):
                await made.end()
        self._starting.clear()
        idle, self._idle = self._idle, []
        for worker in idle:
            if worker.retiring is not None:
                worker.retiring.cancel()
            await worker.end()

    async def _free(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.retiring is not None:
                worker.retiring.cancel()
            if worker.runs:
                return worker
        return await self._new()

    async def _new(self) -> Worker:
        """A new process. One whose caller goes away meanwhile is left to load its models, for whoever comes next."""
        starting = self._starting.pop() if self._starting else asyncio.create_task(Worker.start(self._memory, self._models))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if not starting.cancelled():
                self._starting.append(starting)
            raise

    async def _asked(self, worker: Worker, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        keep = False
        try:
            answer = await worker.ask(job, data, most)
            keep = True
            return answer
        except Failed as failed:
            keep = failed.args[0] not in ("crash", "time", "memory", "unreadable")
            raise
        finally:
            if keep and worker.runs and worker.jobs < _JOBS:
                self._idle.append(worker)
                worker.retiring = asyncio.get_running_loop().call_later(self._idle_seconds, self._retire, worker)
            else:
                await worker.end()

    def _retire(self, worker: Worker) -> None:
        if worker in self._idle:
            self._idle.remove(worker)
            worker.kill()
