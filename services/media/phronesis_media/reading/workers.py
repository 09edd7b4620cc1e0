"""Reading processes as the service sees them.

Asked one job after the other, ended at their limits, and kept warm in a pool while they are sound.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from dataclasses import asdict
from typing import Any
from weakref import WeakValueDictionary

from phronesis_contracts import Busy, TimedOut, Unavailable

from ..media import tenant
from .jobs import READY, Job

log = logging.getLogger(__name__)

_GRACE = 2.0
"""Seconds beyond a job's own after which its process is ended from outside."""
# One thread for each library: their pools would take address space by the number of processors.
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_START = 60.0
"""Seconds that a process may take to load its models."""
_NOT_STARTED = Unavailable("the process that reads such media did not start", retry_after=1)
_TOO_LATE = TimedOut("the medium could not be read in time")


class ReadingFailed(Exception):
    """A medium that was not read. Its one argument says why, as `Refused` does; `time` and `crash` are added."""


class Worker:
    """One reading process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.jobs = 0
        self.retiring: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, memory: int, models: str | None) -> Worker:
        """A new process with `memory` bytes of address space, once it has loaded its models.

        Raises:
            Unavailable: it did not start.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "phronesis_media.reading.process", str(memory), *([models] if models else [])),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,  # parsers quote what they read
                env=_ENVIRONMENT,
                cwd="/",
            )
        except OSError as error:
            raise Unavailable("no process could be started to read the medium", retry_after=1) from error
        worker = cls(process)
        try:
            await worker._ready()
        except BaseException:
            await worker.end()
            raise
        return worker

    async def _ready(self) -> None:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(_START):
                said = await self._process.stdout.readline()
        except (TimeoutError, OSError) as error:
            raise _NOT_STARTED from error
        if said != READY:
            log.error("a reading process did not start")
            raise _NOT_STARTED

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    async def ask(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        """What it answers to a job, in up to `most` bytes.

        Raises:
            Failed: it refused the medium, or ended at it.
            TimedOut: it took too long.
        """
        self.jobs += 1
        try:
            async with asyncio.timeout(job.seconds + _GRACE):
                head, body = await self._converse(job, data, most)
        except TimeoutError as error:
            raise _TOO_LATE from error
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise await self._ended() from error
        if "error" in head:
            raise ReadingFailed(head["error"])
        return head, body

    async def end(self) -> None:
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        if self.runs:
            try:
                self._process.kill()
            except ProcessLookupError:
                return

    async def _converse(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        sink.write(json.dumps({**asdict(job), "size": len(data)}).encode() + b"\n")
        sink.write(data)
        await sink.drain()
        head = json.loads(await source.readline())
        if head["size"] > most:
            raise ValueError("an answer over its limit")
        return head, await source.readexactly(head["size"])

    async def _ended(self) -> Exception:
        """Why it ended. To kill a process that is about to end by itself would lose what it ended with."""
        try:
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        except TimeoutError:
            await self.end()
        code = self._process.returncode
        log.warning("a reading process ended with %s", code)
        match -(code or 0):
            case signal.SIGXCPU:
                return ReadingFailed("time")
            case signal.SIGALRM:
                return _TOO_LATE
        return ReadingFailed("crash")


_WAITING_OF_TENANT = 64
"""Media of one tenant that wait for a process of one kind, those that are read among them."""
_JOBS = 100
"""Media that one process reads before it is replaced: what leaks in a parser does not add up."""


class WorkerPool:
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
        self._most = most
        self._slots = asyncio.Semaphore(most)
        self._waiting = Counter[str]()
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._idle_seconds = idle
        self._idle: list[Worker] = []

    async def ask(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        """The answer of a free process; raises as `Worker.ask` does, and `Busy`: too many media of this tenant wait.

        Tenants take turns: of each no more stand in the line for a process than there are processes.

        A process that has read other media before may carry their damage, so a crash in it, or its lack of memory, is not
        held against this medium: a new process tries once more.
        """
        of = tenant.get()
        if self._waiting[of] >= _WAITING_OF_TENANT:
            raise Busy("too many media of this tenant wait to be read", retry_after=5)
        share = self._shares.setdefault(of, asyncio.Semaphore(self._most))
        self._waiting[of] += 1
        try:
            async with share, self._slots:
                return await self._answer(job, data, most)
        finally:
            self._waiting[of] -= 1
            if not self._waiting[of]:
                del self._waiting[of]

    async def _answer(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        worker = await self._free()
        fresh = worker.jobs == 0
        try:
            return await self._asked(worker, job, data, most)
        except ReadingFailed as failed:
            if fresh or failed.args[0] not in ("crash", "memory"):
                raise
        return await self._asked(await self._new(), job, data, most)

    async def close(self) -> None:
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
        except ReadingFailed as failed:
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
