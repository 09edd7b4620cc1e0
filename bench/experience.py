"""Experience over many turns: how long it takes to recall episodes and strategies, to count tools, and to ask the memory.

One owner has `count` episodes, each with the outcomes of two tool calls, and `count` strategies; three other owners have a
tenth of that. Vectors are given, so that the embedding model costs nothing here: the figures are those of the stores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from uuid import uuid4

import asyncpg

from phronesis.bus import Call
from phronesis.contracts import Principal
from phronesis.contracts.episodes import AskToolStatistics, MemoryOperation, MemoryQuery, RecallEpisodes
from phronesis.contracts.strategies import RecallStrategies
from phronesis.memory.adapters.pgvector import PgVector
from phronesis.memory.experience.serving import Experience, assemble_experience
from phronesis.memory.settings import MemorySettings
from phronesis.postgres import Database
from tests.support.servers import PostgresServer

from .filling import build_index, fill
from .pairs import started
from .progress import say
from .synthetic import DIMENSION, MODEL, GivenVectors, Synthetic

SIZES, QUICK = (10_000, 100_000), (1_000,)
_OWNER = "ann"
_WARM = 20
"""Questions that are asked before any counts."""
_OUTCOMES = """
    INSERT INTO tool_outcomes (episode_id, place, tenant, owner, tool, ok, code, detail, ms, at)
    SELECT id, place, tenant, owner, 'tool_' || abs(hashtext(id::text)) % 30, ok, CASE WHEN ok THEN '' ELSE 'timed_out' END,
        CASE WHEN ok THEN '' ELSE 'the tool did not answer ' || left(body, 60) END, 40, created_at
    FROM items, LATERAL (
        SELECT place, abs(hashtext(id::text || place)) % 20 < 17 AS ok FROM generate_series(1, 2) AS place
    ) called
    WHERE tenant = $1 AND kind = 'episode'"""
_STRATEGIES = """
    INSERT INTO strategies (item_id, tenant, owner, task_id, approach, tools_used, score)
    SELECT id, tenant, owner, id, 'Search, read, write, check.', '{web_search,compose}', 0.8
    FROM items WHERE tenant = $1 AND kind = 'strategy'"""


async def section(quick: bool) -> list[str]:
    """Its lines."""
    sizes, questions = (QUICK, 40) if quick else (SIZES, 200)
    lines = [
        "On PostgreSQL with pgvector. A question aims at 10 ms at the median, and at 100 ms at p95 with an embedding.",
        "",
        "| episodes, and strategies | what is asked | p50 ms | p95 ms |",
        "|---|---|---|---|",
    ]
    for size in sizes:
        say(f"experience: {size:,} episodes and strategies")
        for name, taken in (await _measured(size, questions)).items():
            p95 = statistics.quantiles(taken, n=20)[18]
            lines.append(f"| {size:,} | {name} | {statistics.median(taken) * 1_000:.1f} | {p95 * 1_000:.1f} |")
    return lines


async def _measured(count: int, questions: int) -> dict[str, list[float]]:
    who, source, embedder = Principal(tenant=f"bench-{uuid4().hex[:8]}", user=_OWNER), Synthetic(1), GivenVectors()
    async with AsyncExitStack() as used:
        postgres = await used.enter_async_context(started(PostgresServer))
        settings = await used.enter_async_context(postgres.fresh_schema("memory"))
        session = await used.enter_async_context(postgres.session(settings, "memory"))
        patient = settings.model_copy(update={"command_timeout": 600.0})
        database = await used.enter_async_context(Database.open(patient, "memory"))
        await _filled(session, who.tenant, count, source)
        texts = source.texts(questions + _WARM, 6)
        embedder.of = dict(zip(texts, source.vectors(len(texts)), strict=True))
        vectors = PgVector(database, MODEL, DIMENSION)
        made = assemble_experience(database, embedder, MemorySettings(stage_seconds=30), vectors, lambda: None)
        return {name: await _taken(ask, texts) for name, ask in _questions(made, Call(who, "orchestrator")).items()}


async def _filled(session: asyncpg.Connection, tenant: str, count: int, source: Synthetic) -> None:
    await session.execute("DROP INDEX IF EXISTS vectors_384", timeout=60)
    for owner, size in ((_OWNER, count), *((f"other{n}", count // 10) for n in range(3))):
        for kind in ("episode", "strategy"):
            await fill(session, tenant, owner, size, source, kind)
    async with session.transaction():
        await session.execute(_OUTCOMES, tenant, timeout=600)
        await session.execute(_STRATEGIES, tenant, timeout=600)
    await build_index(session)
    for table in ("tool_outcomes", "strategies"):
        await session.execute(f"VACUUM ANALYZE {table}", timeout=600)


def _questions(made: Experience, call: Call) -> dict[str, Callable[[str], Awaitable[object]]]:
    """What is asked, by the name that the report has for it."""

    async def queried(operation: MemoryOperation, text: str) -> object:
        found = await made.querying.memory_query(call, MemoryQuery(operation=operation, query=text))
        assert found.error is None, found.error
        return found

    async def failed(text: str) -> object:
        return await queried(MemoryOperation.FAILURES, f"what went wrong with tool_{len(text) % 30}")

    return {
        "episodes": lambda text: made.remembering.recall_episodes(call, RecallEpisodes(query=text)),
        "strategies": lambda text: made.strategies.recall_strategies(call, RecallStrategies(goal=text)),
        "figures of all tools": lambda _: made.remembering.tool_statistics(call, AskToolStatistics()),
        "figures of five tools": lambda _: made.remembering.tool_statistics(
            call, AskToolStatistics(tools=tuple(f"tool_{n}" for n in range(5)))
        ),
        "`memory_query` episodes": partial(queried, MemoryOperation.EPISODES),
        "`memory_query` context": partial(queried, MemoryOperation.CONTEXT),
        "`memory_query` style": partial(queried, MemoryOperation.STYLE),
        "`memory_query` failures, by a tool's name": failed,
        "`memory_query` failures, by words": partial(queried, MemoryOperation.FAILURES),
    }


async def _taken(ask: Callable[[str], Awaitable[object]], texts: list[str]) -> list[float]:
    """Seconds that each question took."""
    taken = []
    for text in texts:
        began = time.perf_counter()
        await ask(text)
        taken.append(time.perf_counter() - began)
    return taken[_WARM:]
