"""What tests of the bus share: callers nobody else uses, waiting for a state, and what the broker says of its streams."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from phronesis_bus import Bus, connect
from phronesis_contracts import Principal
from tests.support.servers import NatsServer


def somebody(**changes: Any) -> Principal:
    """A caller in a tenant of its own."""
    return Principal(tenant=f"t-{uuid4().hex[:12]}", user=f"u-{uuid4().hex[:12]}").model_copy(update=changes)


async def eventually(state: Callable[[], bool | Awaitable[bool]], within: float = 60.0) -> None:
    """Return as soon as `state` holds; fail when it does not within that many seconds."""
    async with asyncio.timeout(within):
        while True:
            held = state()
            if await held if inspect.isawaitable(held) else held:
                return
            await asyncio.sleep(0.02)


async def jetstream(bus: Bus, call: str, **given: Any) -> dict[str, Any]:
    """What the broker's API of streams and consumers answers. `call`: `STREAM.INFO.EVT`, say."""
    reply = await bus.request(f"$JS.API.{call}", json.dumps(given).encode(), timeout=5)
    answer: dict[str, Any] = json.loads(reply.data)
    return answer


@asynccontextmanager
async def broker(folder: Path) -> AsyncIterator[NatsServer]:
    """A NATS server of a test's own, which the test may kill."""
    server = NatsServer(folder / "nats")
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def connected(server: NatsServer, *names: str, **changes: Any) -> AsyncIterator[list[Bus]]:
    """The services `names`, connected with the settings of the tests and `changes`."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(connect(name, server.settings(name).model_copy(update=changes))) for name in names
        ]


async def restarted(server: NatsServer) -> None:
    """Start a killed server again and declare nothing."""
    await server._child.start()
    await server._child.wait_ready()
