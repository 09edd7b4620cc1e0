"""Experience over many turns: how long it takes to recall episodes and strategies, to count tools, and to ask the memory.

One owner has `count` episodes, each with the outcomes of two tool calls, and `count` strategies; three other owners have a
tenth of that. Every question is asked twice over: with its vector given, which gives the figures of the stores, and with the
local model at work on its text as well, of which nothing is kept from one question to the next.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from uuid import uuid4

import asyncpg

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.episodes import AskToolStatistics, MemoryOperation, MemoryQuery, RecallEpisodes, RecallStrategies
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.episodes.handlers import Experience, assemble_experience
from phronesis_memory.ports import Embedder, VectorIndex
from phronesis_memory.settings import ExperienceSettings, MemorySettings
from phronesis_memory.vectors.pgvector import PgVector
from phronesis_postgres import Database
from tests.support.servers import PostgresServer

from .filling import build_indexes, drop_indexes, fill
from .progress import say
from .stacks import started
from .synthetic import DIMENSION, MODEL, Embedding, GivenVectors, Synthetic

SIZES, QUICK = (10_000, 100_000), (1_000,)
_OWNER = "ann"
EPISODES, STRATEGIES, _TOOL = "episodes", "strategies", "`memory_query`"
RECALL, QUERY = 25, 30
"""Milliseconds at p95, with the embedding, that recall and `memory_query` may take (V-007, V-T01)."""
_ALL, _FIVE = "figures of all tools", "figures of five tools"
_NAMED, _WORDED = f"{_TOOL} failures, by a tool's name", f"{_TOOL} failures, by words"
_BARE = frozenset({_ALL, _FIVE, _NAMED, _WORDED})
"""What needs no vector."""
_WARM = 20
"""Questions that are asked before any counts."""
_OUTCOMES = """
    INSERT INTO tool_outcomes (episode_id, place, tenant, owner, tool, ok, code, detail, ms, at)
    SELECT id, place, tenant, owner, 'tool_' || abs(hashtext(id::text)) % 30, ok, CASE WHEN ok THEN '' ELSE 'timed_out' END,
        CASE WHEN ok THEN '' ELSE 'the tool did not answer ' || left(body, 60) END, 40,
        created_at - make_interval(secs => abs(hashtext('at' || id::text)) % 10000000)
    FROM items, LATERAL (
        SELECT place, abs(hashtext(id::text || place)) % 20 < 17 AS ok FROM generate_series(1, 2) AS place
    ) called
    WHERE tenant = $1 AND kind = 'episode'"""
_STRATEGIES = """
    INSERT INTO strategies (item_id, tenant, owner, task_id, approach, tools_used, score)
    SELECT id, tenant, owner, id, 'Search, read, write, check.', '{web_search,compose}', 0.8
    FROM items WHERE tenant = $1 AND kind = 'strategy'"""
_EVIDENCE = """
    INSERT INTO strategy_evidence (item_id, task_id, tenant, owner, accepted, verified_by)
    SELECT item_id, task_id, tenant, owner, true, 'person' FROM strategies WHERE tenant = $1"""


async def section(quick: bool) -> list[str]:
    """Its lines."""
    sizes, questions = (QUICK, 40) if quick else (SIZES, 200)
    lines = [
        "On PostgreSQL with pgvector. The aims are for p95 at 100,000 with the embedding, which is computed for every",
        "question; with a given vector a question aims at 10 ms at the median (V-060). Failures and figures need no vector.",
        "",
        "| episodes, and strategies | what is asked | p50 ms | p95 ms | with embedding, p50 ms | p95 ms | aim for p95, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        say(f"experience: {size:,} episodes and strategies")
        lines += [row(size, name, *taken) for name, taken in (await _measured(size, questions)).items()]
    return lines


def row(size: int, name: str, given: Sequence[float], embedded: Sequence[float]) -> str:
    """One line: seconds that a question took with its vector given, and with its embedding; none of these where it has none."""
    cells = [f"{statistics.median(some) * 1_000:.1f} | {_p95(some):.1f}" if some else "— | —" for some in (given, embedded)]
    return f"| {size:,} | {name} | {' | '.join(cells)} | {_aim(name)} |"


def _aim(name: str) -> str:
    return f"under {RECALL}" if name in (EPISODES, STRATEGIES) else f"under {QUERY}" if name.startswith(_TOOL) else ""


def _p95(taken: Sequence[float]) -> float:
    """In milliseconds."""
    return statistics.quantiles(taken, n=20)[18] * 1_000


async def _measured(count: int, questions: int) -> dict[str, tuple[list[float], list[float]]]:
    who, source, given = Principal(tenant=f"bench-{uuid4().hex[:8]}", user=_OWNER), Synthetic(1), GivenVectors()
    async with AsyncExitStack() as used:
        postgres = await used.enter_async_context(started(PostgresServer))
        settings = await used.enter_async_context(postgres.fresh_schema("memory"))
        session = await used.enter_async_context(postgres.session(settings, "memory"))
        patient = settings.model_copy(update={"command_timeout": 600.0})
        database = await used.enter_async_context(Database.open(patient, "memory"))
        works = await used.enter_async_context(LocalEmbedder.open(MemorySettings().threads))
        await _filled(session, who.tenant, count, source)
        texts = source.texts(questions + _WARM, 6)
        given.of = dict(zip(texts, source.vectors(len(texts)), strict=True))
        vectors, call = PgVector(database, MODEL, DIMENSION), Call(who, "orchestrator")
        stores, whole = (_questions(_made(database, one, vectors), call) for one in (given, Embedding(works, given)))
        return {
            name: (await _taken(ask, texts), await _taken(whole[name], texts) if name not in _BARE else [])
            for name, ask in stores.items()
        }


def _made(database: Database, embedder: Embedder, vectors: VectorIndex) -> Experience:
    """The service, which keeps no vector of a question and gives no slow search up."""
    settings = MemorySettings(stage_seconds=30, query_cache_seconds=0)
    return assemble_experience(database, embedder, settings, vectors, lambda: None, ExperienceSettings(query_seconds=30))


async def _filled(session: asyncpg.Connection, tenant: str, count: int, source: Synthetic) -> None:
    await drop_indexes(session)
    for owner, size in ((_OWNER, count), *((f"other{n}", count // 10) for n in range(3))):
        for kind in ("episode", "strategy"):
            await fill(session, tenant, owner, size, source, kind)
    async with session.transaction():
        await session.execute(_OUTCOMES, tenant, timeout=600)
        await session.execute(_STRATEGIES, tenant, timeout=600)
        await session.execute(_EVIDENCE, tenant, timeout=600)
    await build_indexes(session)
    for table in ("tool_outcomes", "strategies", "strategy_evidence"):
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
        EPISODES: lambda text: made.remembering.recall_episodes(call, RecallEpisodes(query=text)),
        STRATEGIES: lambda text: made.strategies.recall_strategies(call, RecallStrategies(goal=text)),
        _ALL: lambda _: made.remembering.tool_statistics(call, AskToolStatistics()),
        _FIVE: lambda _: made.remembering.tool_statistics(call, AskToolStatistics(tools=tuple(f"tool_{n}" for n in range(5)))),
        f"{_TOOL} episodes": partial(queried, MemoryOperation.EPISODES),
        f"{_TOOL} context": partial(queried, MemoryOperation.CONTEXT),
        f"{_TOOL} style": partial(queried, MemoryOperation.STYLE),
        _NAMED: failed,
        _WORDED: partial(queried, MemoryOperation.FAILURES),
    }


async def _taken(ask: Callable[[str], Awaitable[object]], texts: list[str]) -> list[float]:
    """Seconds that each question took."""
    taken = []
    for text in texts:
        began = time.perf_counter()
        await ask(text)
        taken.append(time.perf_counter() - began)
    return taken[_WARM:]
