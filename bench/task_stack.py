"""What tasks are measured on: the orchestrator in a process of its own, and neighbours that answer at once."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from phronesis_bus import Bus, Call, connect, serve
from phronesis_contracts import Nothing
from phronesis_contracts.episodes import (
    RECALL_STRATEGIES,
    RECORD_STRATEGY,
    RecalledStrategies,
    RecallStrategies,
    Recording,
    RecordStrategy,
    StrategyRecorded,
)
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.memory import PROFILE_GET, REMEMBER_TOOL, Profile, Remember, Remembered, RememberedItem
from phronesis_contracts.twin import SURVEY_TOOL, Survey, Surveyed
from phronesis_orchestrator.tasks.background import LOOKING_UP, PURPOSES
from phronesis_postgres import PostgresSettings
from tests.support.servers import NatsServer

from .planned import TOOL
from .processes import megabytes_of

_PROMPTS = dict.fromkeys((*PURPOSES, LOOKING_UP), "x")
_NOVA = AgentProfile(agent="nova", version="1", loop="tools", stages=(), prompts=_PROMPTS, tools=(TOOL,))
_ROWS = tuple({"group": f"department {n}", "value": n, "known": n, "unknown": 0} for n in range(10))


@dataclass(frozen=True)
class Orchestrator:
    """The running process."""

    process: asyncio.subprocess.Process

    @property
    def megabytes(self) -> float:
        """Its memory."""
        return megabytes_of(self.process.pid)


@asynccontextmanager
async def orchestrator(nats: NatsServer, settings: PostgresSettings) -> AsyncIterator[Orchestrator]:
    """The orchestrator with a scripted planner, for the length of a block."""
    bus = nats.settings("orchestrator")
    addresses = {
        "BUS_URL": bus.url,
        "BUS_PASSWORD_FILE": str(bus.password_file),
        "BUS_SIGNING_KEY_FILE": str(bus.signing_key_file or ""),
        "BUS_TRUST_DIR": str(bus.trust_dir),
        "POSTGRES_DSN": settings.dsn.get_secret_value(),
        "ORCHESTRATOR_LEARN": "false",
    }
    inherited = dict(os.environ)  # noqa: TID251  # handed on, not read
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.planned", env=inherited | addresses)
    try:
        yield Orchestrator(process)
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def neighbours(nats: NatsServer) -> AsyncIterator[None]:
    """All that a task asks, answered from fixed values."""
    async with AsyncExitStack() as used:

        async def service(name: str) -> Bus:
            return await used.enter_async_context(connect(name, nats.settings(name)))

        memory, graph, instructions = await service("memory"), await service("graph"), await service("instructions")
        await serve(instructions, AGENT_GET, _agent)
        await serve(graph, SURVEY_TOOL, _surveyed)
        await serve(memory, PROFILE_GET, _profile)
        await serve(memory, REMEMBER_TOOL, _remembered)
        await serve(memory, RECALL_STRATEGIES, _strategies)
        await serve(memory, RECORD_STRATEGY, _recorded)
        yield


async def _agent(call: Call, request: AgentRef) -> AgentProfile:
    return _NOVA


async def _surveyed(call: Call, request: Survey) -> Surveyed:
    return Surveyed(rows=_ROWS, total=len(_ROWS), statement="MATCH")


async def _profile(call: Call, request: Nothing) -> Profile:
    return Profile()


async def _remembered(call: Call, request: Remember) -> Remembered:
    items: tuple[Any, ...] = request.items
    return Remembered(
        items=tuple(RememberedItem(id=f"i{at}", external_id=one.external_id, status="created") for at, one in enumerate(items))
    )


async def _strategies(call: Call, request: RecallStrategies) -> RecalledStrategies:
    return RecalledStrategies()


async def _recorded(call: Call, request: RecordStrategy) -> StrategyRecorded:
    return StrategyRecorded(status=Recording.RECORDED, id="s1")
