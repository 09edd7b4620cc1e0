"""Stacks and servers to measure: each in a folder of its own, with no model of anybody's and no limit of requests."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from tests.chaos.stack import ChaosStack
from tests.chaos.traffic import Traffic
from tests.support.servers import NatsServer, OwnServer

Server = TypeVar("Server", bound=OwnServer | NatsServer)

ENVIRONMENT = {
    "GATEWAY_REQUESTS_PER_SECOND": "100000",
    "GATEWAY_BURST": "100000",
    "GATEWAY_TENANT_REQUESTS_PER_SECOND": "100000",
    "GATEWAY_TENANT_BURST": "100000",
    "GATEWAY_MAX_REQUESTS_PER_TENANT": "100000",
    "GROQ_API_KEY": "",
    "ORCHESTRATOR_MODEL_URL": "",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "",
}


@asynccontextmanager
async def made(environment: dict[str, str] | None = None) -> AsyncIterator[ChaosStack]:
    """A stack that is not started yet; it is stopped after the block."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        stack = ChaosStack(Path(folder) / "data", ENVIRONMENT | (environment or {}))
        try:
            yield stack
        finally:
            await stack.down()


@asynccontextmanager
async def running(environment: dict[str, str] | None = None) -> AsyncIterator[ChaosStack]:
    """A stack that is ready, for the length of a block."""
    async with made(environment) as stack:
        await stack.up()
        await ready(stack)
        yield stack


async def ready(stack: ChaosStack) -> None:
    """Return when everything is up."""
    traffic = Traffic(stack.url, stack.key)
    assert await traffic.ready(60), "the stack did not become ready"
    await traffic.close()


async def load_portfolio(stack: ChaosStack) -> None:
    """Load the sample portfolio."""
    command = [sys.executable, "-m", "phronesis", "load", "portfolio", "--data", str(stack.data.root)]
    process = await asyncio.create_subprocess_exec(*command, stdout=sys.stderr)
    assert await process.wait() == 0


@asynccontextmanager
async def started(kind: Callable[[Path], Server]) -> AsyncIterator[Server]:
    """A server of its own that answers, for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        server = kind(Path(folder) / "data")
        try:
            await server.start()
            yield server
        finally:
            await server.stop()
