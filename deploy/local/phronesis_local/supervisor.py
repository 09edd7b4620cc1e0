"""Keeps the parts of a stack running: started in their order, started again when they end, restarted one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError

from .layout import DataDir, PartRecord, ProcessId, Restart, marked_processes
from .parts import GATEWAY, OWNERS, service_of
from .processes import Child, ChildFailed, Fork, Program, Recovery, fork_nothing, kill_processes, trim

_FIRST_DELAY, _LONGEST_DELAY = 0.2, 10.0
_STEADY = 30.0
"""Seconds of work after which the delay before a restart is the first one again."""
_LOOK = 5.0
_SILENT = 90.0
"""Seconds without an answer after which a part that still runs is killed; a part that was paused for a minute is not, nor a
store of which it can be seen that it recovers its data."""
_START_TRIES = 3
_CHECK = 1.0
_POLL = 0.1


@dataclass
class SupervisedPart:
    program: Program
    port: int | None = None
    fork: Fork = fork_nothing
    record: PartRecord = field(default_factory=lambda: PartRecord(state="waiting"))
    child: Child = field(init=False)
    came_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is ready for the first time."""
    gave_up: ChildFailed | None = None
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.child = Child(self.program, self.fork)
        self.record.port = self.port


class Supervisor:
    """Keeps the parts on one data directory.

    Args:
        changed: called after each change of a part's record.
        fork: forks what need not be executed.
    """

    def __init__(self, data: DataDir, changed: Callable[[], None], fork: Fork = fork_nothing) -> None:
        self._data = data
        self._changed = changed
        self._fork = fork
        self._stopping = asyncio.Event()
        self.parts: dict[str, SupervisedPart] = {}

    def keep(
        self, program: Program, *, port: int | None = None, after: Callable[[], Awaitable[None]] | None = None
    ) -> SupervisedPart:
        """Run `program` from now on, once what it has to wait for (`after`) is there."""
        part = self.parts[program.name] = SupervisedPart(program, port, self._fork)
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
        """Return when each of these parts has become ready once. Raises `ChildFailed`: one of them failed again and again."""
        for name in names:
            part = self.parts[name]
            while not part.came_up.is_set():
                if part.gave_up is not None:
                    raise part.gave_up
                await asyncio.sleep(_POLL)

    async def stop(self, *names: str) -> None:
        self._stopping.set()
        await asyncio.gather(*(self._stop(self.parts[name]) for name in names if name in self.parts))

    def kill(self) -> None:
        self._stopping.set()
        for part in self.parts.values():
            part.child.kill()

    async def crashed(self) -> None:
        """Return never, unless the supervision itself fails. Raises `Exception`: what it failed with."""
        while True:
            for part in self.parts.values():
                if part.task is not None and part.task.done() and not part.task.cancelled():
                    part.task.result()
            await asyncio.sleep(_CHECK)

    async def _stop(self, part: SupervisedPart) -> None:
        if part.task is not None:
            part.task.cancel()
            await asyncio.wait({part.task})
        await part.child.stop()
        self._end_leftovers(part)
        self._say(part, state="stopped", process=None)

    async def _keep(self, part: SupervisedPart, after: Callable[[], Awaitable[None]] | None) -> None:
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

    async def _run(self, part: SupervisedPart) -> None:
        began = time.monotonic()
        await part.child.start()
        pid = part.child.pid
        self._say(part, state="starting", process=ProcessId.of(pid) if pid else None)
        await part.child.wait_ready(lambda: self._say(part, state="recovering"))
        self._say(part, state="up", seconds=round(time.monotonic() - began, 2), reason=None)
        part.came_up.set()
        answered = looked = time.monotonic()
        recovery = Recovery(part.program)
        while part.child.pid is not None:
            await asyncio.sleep(_POLL)
            if time.monotonic() - looked > _LOOK:
                trim(part.program.log)
                if await part.program.ready() is not False:
                    answered = looked = time.monotonic()
                    if part.record.state == "recovering":
                        self._say(part, state="up")
                    continue
                still = await recovery.still(part.child.process)
                looked = time.monotonic()
                if looked - answered > _SILENT and part.program.recovers and still < _SILENT:
                    if part.record.state == "up":
                        self._say(part, state="recovering")
                elif looked - answered > _SILENT:
                    self._say(part, state="down", process=None, reason="it did not answer, and was killed")
                    return
        part.child.kill()
        self._say(part, state="down", process=None, reason=f"ended with code {part.child.exit_code}")

    def _end_leftovers(self, part: SupervisedPart) -> None:
        """What a part started may outlive it; a new one must not meet it."""
        kill_processes(process for name, process in marked_processes(self._data) if name == part.program.name)

    def _say(self, part: SupervisedPart, **changes: object) -> None:
        part.record = part.record.model_copy(update=changes)
        self._changed()


ORDER = ("graph", "instructions", "media", "memory", "orchestrator", GATEWAY)
"""Whoever is asked comes before who asks. Inside a version of the contracts any order works; this one needs no such care."""
_REQUEST_LOOK = 0.2
_OTHERS = 60.0
"""Seconds that another process of the same service may take to be up, before one that works is stopped."""


class RestartRequest(BaseModel):
    """What `phronesis restart` leaves in the data directory."""

    model_config = ConfigDict(frozen=True)

    id: str
    parts: tuple[str, ...]
    """The parts to restart, in order."""


def plan_restart(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """The parts that are meant, in the order in which they are restarted.

    Args:
        names: services, or single parts; none for all of them.

    Raises:
        LookupError: a name is none of these.
    """
    unknown = [name for name in names if name not in there]
    if unknown:
        raise LookupError(f"{', '.join(unknown)}: no such service or part")
    meant = [part for part in there if not names or part in names or service_of(part) in names]
    return tuple(sorted(meant, key=lambda part: ORDER.index(service_of(part))))


class Rolling:
    """Carries out what is asked for, for as long as a stack runs."""

    def __init__(
        self,
        data: DataDir,
        services: Sequence[str],
        supervisor: Supervisor,
        program: Callable[[str], Program],
        schemas: Callable[[Sequence[str]], Awaitable[None]],
        tell: Callable[[Restart], None],
    ) -> None:
        self._data = data
        self._services = services
        self._supervisor = supervisor
        self._program = program
        self._schemas = schemas
        self._tell = tell
        self._told = Restart(id="")

    async def stay(self) -> None:
        while True:
            request = self._asked()
            if request is None:
                await asyncio.sleep(_REQUEST_LOOK)
                continue
            self._told = Restart(id=request.id)
            self._tell(self._told)
            try:
                await self._roll(request.parts)
                self._line("all of them are up", "done")
            except ChildFailed as error:
                self._line(f"stopped here; the rest runs on as it was: {error}", "failed")

    def _asked(self) -> RestartRequest | None:
        try:
            request = RestartRequest.model_validate_json(self._data.restart.read_text())
        except (FileNotFoundError, ValidationError):
            return None
        self._data.restart.unlink(missing_ok=True)
        return request

    async def _roll(self, parts: Sequence[str]) -> None:
        """Restart the parts.

        Raises:
            ChildFailed: the schemas could not be brought up to date, or a process did not come up; no further one is touched.
        """
        if any(service_of(part) in OWNERS for part in parts):
            await self._schemas(parts)
            self._line("the schemas are up to date")
        for number, part in enumerate(parts, 1):
            await self._others(part)
            began = time.monotonic()
            await self._supervisor.replace(await asyncio.to_thread(self._program, part))
            took = time.monotonic() - began
            start = self._supervisor.parts[part].record.seconds
            self._line(f"{number:2} of {len(parts)}: {part} is up again after {took:.1f} s, {start} s of them its start")

    async def _others(self, part: str) -> None:
        """Wait until every other process of the same service is up: one of them has to work while this one does not."""
        others = [name for name in self._services if service_of(name) == service_of(part) and name != part]
        limit = time.monotonic() + _OTHERS
        while down := [name for name in others if self._supervisor.parts[name].record.state != "up"]:
            if time.monotonic() > limit:
                raise ChildFailed(f"{', '.join(down)} is not up")
            await asyncio.sleep(_REQUEST_LOOK)

    def _line(self, text: str, state: str = "running") -> None:
        self._told = self._told.model_copy(update={"lines": (*self._told.lines, text), "state": state})
        self._tell(self._told)
