"""A reading process, as the service sees it: asked one job after the other, ended at its limits."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import asdict
from typing import Any

from phronesis_contracts import TimedOut, Unavailable

from ..reading.jobs import READY, Job

log = logging.getLogger(__name__)

_GRACE = 2.0
"""Seconds beyond a job's own after which its process is ended from outside."""
# One thread for each library: their pools would take address space by the number of processors.
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_START = 60.0
"""Seconds that a process may take to load its models."""
_NOT_STARTED = Unavailable("the process that reads such media did not start", retry_after=1)
_TOO_LATE = TimedOut("the medium could not be read in time")


class Failed(Exception):
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
        """Whether it has not ended yet."""
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
            raise Failed(head["error"])
        return head, body

    async def end(self) -> None:
        """End it, where it runs, and wait for that."""
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End it without waiting."""
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
                return Failed("time")
            case signal.SIGALRM:
                return _TOO_LATE
        return Failed("crash")
