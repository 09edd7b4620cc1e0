"""Rolling restart: one process after the other, each when the one before it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from .child import ChildFailed, Program
from .layout import DataDir
from .parts import GATEWAY, OWNERS, service_of
from .record import Restart
from .supervisor import Supervisor

ORDER = ("graph", "instructions", "media", "memory", "orchestrator", GATEWAY)
"""Whoever is asked comes before who asks. Inside a version of the contracts any order works; this one needs no such care."""
_LOOK = 0.2
_OTHERS = 60.0
"""Seconds that another process of the same service may take to be up, before one that works is stopped."""


class Asked(BaseModel):
    """What `phronesis restart` leaves in the data directory."""

    model_config = ConfigDict(frozen=True)

    id: str
    parts: tuple[str, ...]
    """The parts to restart, in order."""


def planned(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """The parts that are meant, in the order in which they are restarted.

    Args:
        names: services, or single parts; none for all of them.
        there: the parts that run a service.

    Raises:
        LookupError: a name is none of these.
    """
    unknown = [name for name in names if name not in there]
    if unknown:
        raise LookupError(f"{', '.join(unknown)}: no such service or part")
    meant = [part for part in there if not names or part in names or service_of(part) in names]
    return tuple(sorted(meant, key=lambda part: ORDER.index(service_of(part))))


class Rolling:
    """Carries out what is asked for, for as long as a stack runs.

    Args:
        data: where restarts are asked for.
        services: the parts that run a service.
        supervisor: keeps them running.
        program: the program that a part runs from now on.
        schemas: brings the schemas of the services that these parts run up to date.
        tell: called with how far a restart has come.
    """

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
        """Wait for what is asked for, and do it."""
        while True:
            asked = self._asked()
            if asked is None:
                await asyncio.sleep(_LOOK)
                continue
            self._told = Restart(id=asked.id)
            self._tell(self._told)
            try:
                await self._roll(asked.parts)
                self._line("all of them are up", "done")
            except ChildFailed as error:
                self._line(f"stopped here; the rest runs on as it was: {error}", "failed")

    def _asked(self) -> Asked | None:
        try:
            asked = Asked.model_validate_json(self._data.restart.read_text())
        except (FileNotFoundError, ValidationError):
            return None
        self._data.restart.unlink(missing_ok=True)
        return asked

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
            await asyncio.sleep(_LOOK)

    def _line(self, text: str, state: str = "running") -> None:
        self._told = self._told.model_copy(update={"lines": (*self._told.lines, text), "state": state})
        self._tell(self._told)
