"""Keeps the parts of a stack running: starts them in their order, starts them again when they end, stops them in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from .child import Child, ChildFailed, Program
from .environment import marked
from .layout import DataDir
from .logfile import trimmed
from .processes import end
from .record import PartRecord, ProcessId

_FIRST_DELAY, _LONGEST_DELAY = 0.2, 10.0
_STEADY = 30.0
"""Seconds of work after which the delay before a restart is the first one again."""
_LOOK = 5.0
_SILENT = 90.0
"""Seconds without an answer after which a part that still runs is killed; a part that was paused for a minute is not."""
_START_TRIES = 3
_CHECK = 1.0
_POLL = 0.1


@dataclass
class Kept:
    """One supervised part."""

    program: Program
    port: int | None = None
    record: PartRecord = field(default_factory=lambda: PartRecord(state="waiting"))
    child: Child = field(init=False)
    came_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is ready for the first time."""
    gave_up: ChildFailed | None = None
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.child = Child(self.program)
        self.record.port = self.port


class Supervisor:
    """The parts of one data directory.

    Args:
        data: the directory.
        changed: called after each change of a part's record.
    """

    def __init__(self, data: DataDir, changed: Callable[[], None]) -> None:
        self._data = data
        self._changed = changed
        self._stopping = asyncio.Event()
        self.parts: dict[str, Kept] = {}

    def keep(self, program: Program, *, port: int | None = None, after: Callable[[], Awaitable[None]] | None = None) -> Kept:
        """Run `program` from now on, once what it has to wait for (`after`) is there."""
        part = self.parts[program.name] = Kept(program, port)
        part.task = asyncio.create_task(self._keep(part, after), name=program.name)
        return part

    async def replace(self, program: Program) -> None:
        """Stop the part of this program's name in order, run `program` in its place, and return when that is ready.

        Raises:
            ChildFailed: it failed again and again. It is still tried, as a part that ends is: the cause may pass.
        """
        before = self.parts[program.name]
        await self._stop(before)
        part = self.keep(program, port=before.port)
        part.record.restarts = before.record.restarts
        try:
            await self.up(program.name)
        except ChildFailed:
            part.came_up.set()
            part.task = asyncio.create_task(self._keep(part, None), name=program.name)
            raise

    async def up(self, *names: str) -> None:
        """Return when each of these parts has become ready once.

        Raises:
            ChildFailed: one of them failed again and again.
        """
        for name in names:
            part = self.parts[name]
            while not part.came_up.is_set():
                if part.gave_up is not None:
                    raise part.gave_up
                await asyncio.sleep(_POLL)

    async def stop(self, *names: str) -> None:
        """Stop these parts side by side and forget about them."""
        self._stopping.set()
        await asyncio.gather(*(self._stop(self.parts[name]) for name in names if name in self.parts))

    def kill(self) -> None:
        """End everything at once, and restart nothing."""
        self._stopping.set()
        for part in self.parts.values():
            part.child.kill()

    async def crashed(self) -> None:
        """Return never, unless the supervision itself fails.

        Raises:
            Exception: what it failed with.
        """
        while True:
            for part in self.parts.values():
                if part.task is not None and part.task.done() and not part.task.cancelled():
                    part.task.result()
            await asyncio.sleep(_CHECK)

    async def _stop(self, part: Kept) -> None:
        if part.task is not None:
            part.task.cancel()
            await asyncio.wait({part.task})
        await part.child.stop()
        self._end_leftovers(part)
        self._say(part, state="stopped", process=None)

    async def _keep(self, part: Kept, after: Callable[[], Awaitable[None]] | None) -> None:
        if after is not None:
            await after()
        delay, failures = _FIRST_DELAY, 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._run(part)
            except ChildFailed as error:
                failures += 1
                self._say(part, state="down", process=None, reason=str(error))
                if failures >= _START_TRIES and not part.came_up.is_set():
                    part.gave_up = error
                    return
            part.child.kill()
            self._end_leftovers(part)
            if self._stopping.is_set():
                return
            if time.monotonic() - began > _STEADY:
                delay = _FIRST_DELAY
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            delay = min(delay * 2, _LONGEST_DELAY)
            part.record.restarts += 1

    async def _run(self, part: Kept) -> None:
        """One life of a part, from its start to its end."""
        began = time.monotonic()
        await part.child.start()
        pid = part.child.pid
        self._say(part, state="starting", process=ProcessId.of(pid) if pid else None)
        await part.child.wait_ready()
        self._say(part, state="up", seconds=round(time.monotonic() - began, 2), reason=None)
        part.came_up.set()
        answered = looked = time.monotonic()
        while part.child.pid is not None:
            await asyncio.sleep(_POLL)
            if time.monotonic() - looked > _LOOK:
                trimmed(part.program.log)
                if await part.program.ready() is not False:
                    answered = time.monotonic()
                looked = time.monotonic()
                if looked - answered > _SILENT:
                    self._say(part, state="down", process=None, reason="it did not answer, and was killed")
                    return
        part.child.kill()
        self._say(part, state="down", process=None, reason=f"ended with code {part.child.exit_code}")

    def _end_leftovers(self, part: Kept) -> None:
        """What a part started may outlive it; a new one must not meet it."""
        end(process for name, process in marked(self._data) if name == part.program.name)

    def _say(self, part: Kept, **changes: object) -> None:
        part.record = part.record.model_copy(update=changes)
        self._changed()
