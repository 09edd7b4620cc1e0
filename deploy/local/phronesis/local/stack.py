"""A stack: the servers and services of one data directory, in the order in which they need each other."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from . import nats, postgres
from .broker import ASKER, DECLARER, Broker
from .child import Child
from .cleanup import end_leftovers
from .http import status_of
from .keys import ensure_owner_key
from .layout import DataDir, write_atomically
from .parts import GATEWAY, OWNERS, SERVERS, SERVICES, Parts, addresses
from .record import PartRecord, ProcessId, StackRecord, write
from .settings import LocalSettings
from .supervisor import Supervisor

log = logging.getLogger(__name__)

_LAST_CHECKS = 20.0


class Stack:
    """The servers and services of one data directory, whose lock this process holds.

    Args:
        data: the directory.
        settings: ports and outside servers.
        show: called with the record after each change.
        parts: what is started; everything by default.
    """

    def __init__(
        self,
        data: DataDir,
        settings: LocalSettings,
        show: Callable[[StackRecord], None],
        parts: Sequence[str] = (*SERVERS, *SERVICES),
    ) -> None:
        where = addresses(settings)
        me = ProcessId.of(os.getpid())
        assert me is not None
        self._data = data
        self._port = where.gateway
        self._show = show
        self._parts = Parts(data, settings, where)
        self._wanted = parts
        self._services = [name for name in parts if name in SERVICES]
        self._supervisor = Supervisor(data, self._changed)
        self._broker: Broker | None = None
        self._migrated = asyncio.Event()
        self._connected = asyncio.Event()
        self._exit = AsyncExitStack()
        self.new_key = ensure_owner_key(data)
        """The owner's API key, at the first start alone."""
        self.record = StackRecord(
            state="starting", supervisor=me, started_at=time.time(), url=where.url, parts={}, bolt=self._parts.graph_url
        )

    async def start(self) -> bool:
        """Start everything and return when each part works.

        Returns:
            Whether the gateway, too, says that all is there; if not, its `/health/ready` names what lacks.

        Raises:
            ChildFailed: a part failed again and again.
        """
        began = time.monotonic()
        write_atomically(self._data.operator, json.dumps(await asyncio.to_thread(self._parts.of_operator)))
        for name in self._wanted:
            if name in SERVERS and name not in self._parts.outside:
                self._supervisor.keep(self._parts.server(name), port=self._parts.port(name))
        self._changed()
        for name in self._services:
            program = await asyncio.to_thread(self._parts.service, name, self._answers)
            self._supervisor.keep(program, port=self._parts.port(name), after=self._needs(name))
        await asyncio.gather(self._connect(), self._migrate())
        await self._supervisor.up(*self._supervisor.parts)
        complete = await self._complete()
        self.record.ready_seconds = round(time.monotonic() - began, 2)
        self.record.state = "ready"
        write_atomically(self._data.url, self.record.url)
        self._changed()
        return complete

    async def stay(self) -> None:
        """Return never, unless the supervision itself fails."""
        await self._supervisor.crashed()

    async def stop(self) -> None:
        """Stop everything in order: what takes work in first, what keeps it last."""
        self.record.state = "stopping"
        self._data.url.unlink(missing_ok=True)
        await self._supervisor.stop(GATEWAY)
        await self._supervisor.stop(*(name for name in SERVICES if name != GATEWAY))
        await self._exit.aclose()
        await self._supervisor.stop(*SERVERS)
        await asyncio.to_thread(end_leftovers, self._data)

    def kill(self) -> None:
        """End everything at once."""
        self._supervisor.kill()

    async def _connect(self) -> None:
        if nats.NAME not in self._wanted:
            return
        if nats.NAME not in self._parts.outside:
            await self._supervisor.up(nats.NAME)
        variables = [await asyncio.to_thread(self._parts.bus_variables, name) for name in (ASKER, DECLARER)]
        self._broker = await self._exit.enter_async_context(Broker.connected(*variables))
        self._connected.set()

    async def _migrate(self) -> None:
        if not any(name in OWNERS for name in self._services):
            return
        if postgres.NAME not in self._parts.outside:
            await self._supervisor.up(postgres.NAME)
        child = Child(self._parts.migration(self._services))
        try:
            await child.start()
            await child.wait_end()
        finally:
            child.kill()
        self._migrated.set()

    def _needs(self, name: str) -> Callable[[], Awaitable[None]]:
        async def there() -> None:
            await self._connected.wait()
            if name in OWNERS:
                await self._migrated.wait()

        return there

    async def _answers(self, name: str) -> bool | None:
        if name == GATEWAY:
            return await status_of(self._port, "/health/live") == 200
        return await self._broker.answers(name) if self._broker else None

    async def _complete(self) -> bool:
        if GATEWAY not in self._services:
            return True
        limit = time.monotonic() + _LAST_CHECKS
        while time.monotonic() < limit:
            if await status_of(self._port, "/health/ready") == 200:
                return True
            await asyncio.sleep(0.1)
        return False

    def _changed(self) -> None:
        parts = {name: part.record for name, part in self._supervisor.parts.items()}
        self.record.parts = {name: PartRecord(state="outside") for name in self._parts.outside} | parts
        try:
            write(self._data, self.record)
        except OSError as error:  # a full disk: the parts run on
            log.warning("the record could not be written: %s", error)
        self._show(self.record)
