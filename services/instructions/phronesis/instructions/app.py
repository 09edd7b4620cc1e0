"""All that the instructions service answers."""

from __future__ import annotations

import asyncio
import contextlib

from phronesis.bus import Bus, Outbox, Relay, serve, serve_basics
from phronesis.contracts import instructions as contract

from .domain import AgentContent
from .handlers import Handlers
from .ports import Store
from .settings import InstructionsSettings


async def build(
    bus: Bus, store: Store, outbox: Outbox, contents: tuple[AgentContent, ...], settings: InstructionsSettings
) -> None:
    """Wire the service to the bus, and begin to load its content."""
    handlers = Handlers(store, settings.cache_seconds)
    relay = Relay(bus, outbox)
    relay.start()
    loading = asyncio.create_task(handlers.load(contents, settings.retry_seconds, relay.wake), name="load-content")

    async def stop_loading() -> None:
        loading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loading

    bus.on_stop(stop_loading)
    await serve(bus, contract.AGENT_GET, handlers.agent_get)
    await serve_basics(bus, {"postgres": store.ping, "content": handlers.ready})
