"""A stack: the servers and services of one data directory in their order; and ending what one has left running."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

import psutil

from . import nats, postgres
from .keys import ensure_owner_key
from .layout import (
    AlreadyRunning,
    DataDir,
    PartRecord,
    ProcessId,
    Restart,
    StackRecord,
    marked_processes,
    part_environment,
    read_record,
    write_atomically,
    write_record,
)
from .loopback import http_status
from .nats import ASKER, DECLARER, Broker
from .nursery import NURSERY, Nursery
from .parts import EVERY_SERVER, GATEWAY, OWNERS, SERVICES, Parts, addresses, copies, servers, service_of
from .processes import Child, Program, kill_processes, wait_gone
from .settings import LocalSettings
from .supervisor import Rolling, Supervisor

_STOP_WITHIN = 45.0
_ORDERLY = 12.0
_LOOKS = 100


class WillNotEnd(Exception):
    """Somebody holds the data directory and cannot be told to end."""


def stop_stack(data: DataDir) -> bool:
    """Stop the stack, in order if its supervisor lives.

    Returns:
        Whether there was anything to stop.

    Raises:
        WillNotEnd: somebody still holds the data directory.
    """
    if not data.root.is_dir():
        return False
    stopped = False
    for _ in range(_LOOKS):
        record = read_record(data)
        supervisor = record.supervisor.process() if record else None
        if supervisor is not None:
            _end_processes([supervisor], _STOP_WITHIN)
            stopped = True
        try:
            with data.locked():
                return bool(end_leftovers(data)) or stopped
        except AlreadyRunning:
            time.sleep(0.1)  # it is so young that it has not written who it is
    raise WillNotEnd(f"a process holds {data.root} and does not say who it is")


def end_leftovers(data: DataDir) -> int:
    """End every process of a stack that has no supervisor: services first, then servers. The caller holds the lock.

    Returns:
        How many there were.
    """
    found = _find_processes(data, read_record(data))
    _end_processes([process for name, process in found if name not in EVERY_SERVER], _ORDERLY)
    _end_processes([process for name, process in found if name in EVERY_SERVER and name != postgres.NAME], _ORDERLY)
    _end_processes([process for name, process in found if name == postgres.NAME], _ORDERLY, signal.SIGINT)
    late = [process for _, process in marked_processes(data)]
    kill_processes(late)
    workers = postgres.workers(data.postgres)
    postgres.end_workers(data.postgres)
    data.record.unlink(missing_ok=True)
    data.url.unlink(missing_ok=True)
    return len(found) + len(late) + len(workers)


def _find_processes(data: DataDir, record: StackRecord | None) -> list[tuple[str, psutil.Process]]:
    found = {process.pid: (name, process) for name, process in marked_processes(data)}
    for name, part in record.parts.items() if record else ():
        process = part.process.process() if part.process else None
        if process is not None:
            found[process.pid] = (name, process)
    return list(found.values())


def _end_processes(processes: list[psutil.Process], within: float, asking: signal.Signals = signal.SIGTERM) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(asking)
    kill_processes(wait_gone(processes, within))


log = logging.getLogger(__name__)

_LAST_CHECKS = 20.0


class Stack:
    """The servers and services of one data directory, whose lock this process holds.

    Args:
        show: called with the record after each change.
        parts: the servers and services that are started; everything by default.
    """

    def __init__(
        self, data: DataDir, settings: LocalSettings, show: Callable[[StackRecord], None], parts: Sequence[str] = ()
    ) -> None:
        where = addresses(settings)
        me = ProcessId.of(os.getpid())
        assert me is not None
        self._data = data
        self._port = where.gateway
        self._show = show
        self._parts = Parts(data, settings, where)
        self._wanted = parts = parts or (*servers(settings), *SERVICES)
        self._services = [copy for name in parts if name in SERVICES for copy in copies(name, settings.replicas)]
        self._versions: dict[str, str] = {}
        self._nursery = Nursery(part_environment(data, NURSERY, {}), data.log(NURSERY))
        self._supervisor = Supervisor(data, self._changed, self._nursery.fork)
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
        if self._services:
            self._nursery.start()  # first, since it imports for a second
        self._data.restart.unlink(missing_ok=True)  # what an earlier supervisor was asked
        write_atomically(self._data.operator, json.dumps(await asyncio.to_thread(self._parts.of_operator)))
        for name in self._wanted:
            if name in EVERY_SERVER and name not in self._parts.outside:
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
        rolling = Rolling(self._data, self._services, self._supervisor, self._renewed, self._bring_schemas, self._tell_restart)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._supervisor.crashed())
            both.create_task(rolling.stay())

    def _renewed(self, name: str) -> Program:
        """The program of a service's process, made anew: what is installed may have changed."""
        self._versions.pop(name, None)
        return self._parts.service(name, self._answers)

    def _tell_restart(self, restart: Restart) -> None:
        self.record.restart = restart
        self._changed()

    async def stop(self) -> None:
        """Stop everything in order: what takes work in first, what keeps it last."""
        self.record.state = "stopping"
        self._data.url.unlink(missing_ok=True)
        gateways = [name for name in self._services if service_of(name) == GATEWAY]
        await self._supervisor.stop(*gateways)
        await self._supervisor.stop(*(name for name in self._services if name not in gateways))
        self._nursery.close()
        await self._exit.aclose()
        await self._supervisor.stop(*EVERY_SERVER)
        await asyncio.to_thread(end_leftovers, self._data)

    def kill(self) -> None:
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
        if not any(service_of(name) in OWNERS for name in self._services):
            return
        if postgres.NAME not in self._parts.outside:
            await self._supervisor.up(postgres.NAME)
        await self._bring_schemas(self._services)
        self._migrated.set()

    async def _bring_schemas(self, services: Sequence[str]) -> None:
        child = Child(self._parts.migration(services), self._nursery.fork)
        try:
            await child.start()
            await child.wait_end()
        finally:
            child.kill()

    def _needs(self, name: str) -> Callable[[], Awaitable[None]]:
        async def there() -> None:
            await self._connected.wait()
            if service_of(name) in OWNERS:
                await self._migrated.wait()

        return there

    async def _answers(self, name: str) -> bool | None:
        pid = self._supervisor.parts[name].child.pid
        if self._broker is None or pid is None or not self._broker.there:
            return None
        version = await self._broker.version(service_of(name), pid)
        if version is not None:
            self._versions[name] = version
        if service_of(name) == GATEWAY:  # by its port, which others come to
            return await http_status(self._parts.port(name) or 0, "/health/live") == 200
        return version is not None

    async def _complete(self) -> bool:
        if GATEWAY not in self._services:
            return True
        limit = time.monotonic() + _LAST_CHECKS
        while time.monotonic() < limit:
            if await http_status(self._port, "/health/ready") == 200:
                return True
            await asyncio.sleep(0.1)
        return False

    def _changed(self) -> None:
        parts = {
            name: part.record.model_copy(update={"version": self._versions.get(name)})
            for name, part in self._supervisor.parts.items()
        }
        self.record.nursery = ProcessId.of(self._nursery.pid) if self._nursery.pid is not None else None
        self.record.parts = {name: PartRecord(state="outside") for name in self._parts.outside} | parts
        try:
            write_record(self._data, self.record)
        except OSError as error:  # a full disk: the parts run on
            log.warning("the record could not be written: %s", error)
        self._show(self.record)
