"""From a turn's end to what a later turn finds: the orchestrator and the memory on a real broker and real stores."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Bus, Call, Relay, announce, ask, connect, serve, tell
from phronesis_contracts import NotFound, Principal, ServiceError, Unavailable
from phronesis_contracts.episodes import (
    MEMORY_QUERY,
    RECALL_EPISODES,
    RECALL_STRATEGIES,
    RECORD_STRATEGY,
    TOOL_STATISTICS,
    AskToolStatistics,
    Episode,
    MemoryOperation,
    MemoryQuery,
    RecallEpisodes,
    RecallStrategies,
)
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.memory import REMEMBER, ItemKind, Remember, RememberItem
from phronesis_contracts.messages import Nothing
from phronesis_contracts.orchestrator import (
    TURN,
    TURN_ENDED,
    TURN_GET,
    SubmitTurn,
    Turn,
    TurnEndedNews,
    TurnRef,
    TurnStatus,
    turn_id,
)
from phronesis_contracts.service import HEALTH
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.app import build as build_memory
from phronesis_memory.ports import Embedder
from phronesis_memory.settings import MemorySettings
from phronesis_orchestrator.app import build as build_orchestrator
from phronesis_orchestrator.app import open_stores
from phronesis_orchestrator.models.reasoner import Reasoner
from phronesis_orchestrator.sessions.calendar import CalendarReaders
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_postgres import Database, PostgresOutbox
from tests.support import groq_tools
from tests.support.analysts import profile
from tests.support.bus import eventually
from tests.support.chat import reasoning
from tests.support.experience import WORKED, strategy
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.logs import logged
from tests.support.memory import WordEmbedder, open_index
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer, VectorServer

SAMPLE = "We shipped! Three lessons from a hard year."


@dataclass
class World:
    """Both services, and a gateway that asks them."""

    gateway: Bus
    orchestrator: Bus
    model: GroqServer
    turns: Database

    async def turn(self, who: Principal, text: str, *rounds: list[tuple[str, Any]]) -> Turn:
        """A turn of noor whose model makes these rounds of calls, as soon as it has ended."""
        for calls in rounds:
            self.model.fail("tools", Fault(calls=calls))
        self.model.fail("tools", Fault(content=groq_tools.draft()))
        request = SubmitTurn(idempotency_key=uuid4().hex, text=text, agent="noor")
        await tell(self.gateway, who, TURN, request)
        id = turn_id(who.tenant, who.user, request.idempotency_key)
        async with asyncio.timeout(30):
            while True:
                try:
                    found = await ask(self.gateway, who, TURN_GET, TurnRef(turn_id=id))
                except NotFound:
                    continue  # not accepted yet; each look is a question, which is what paces them
                if found.status.ended:
                    return found

    async def episodes(self, who: Principal, query: str) -> tuple[Episode, ...]:
        """The episodes that the memory has by now."""
        return (await ask(self.gateway, who, RECALL_EPISODES, RecallEpisodes(query=query))).episodes

    async def lived(self, who: Principal, query: str) -> Episode:
        """The one episode, as soon as the memory has it."""
        found: list[Episode] = []

        async def there() -> bool:
            found[:] = await self.episodes(who, query)
            return bool(found)

        await eventually(there)
        [episode] = found
        return episode

    async def expired(self, who: Principal) -> bool:
        """Let the time of a turn be over that waits for what does not answer; whether there was one."""
        async with self.turns.transaction(who.tenant) as connection:
            done = await connection.execute(
                "UPDATE turns SET expires_at = now(), lease_until = now() WHERE status = 'queued' AND wait IS NOT NULL"
            )
        return bool(done == "UPDATE 1")

    def told(self) -> list[str]:
        """What the tools gave, as the last call to the model showed it."""
        request = self.model.calls[-1].request
        assert request is not None
        return [message["content"] for message in request["messages"] if message["role"] == "tool"]


@asynccontextmanager
async def memory(nats: NatsServer, database: Database, embedder: Embedder, index: Any) -> AsyncIterator[Bus]:
    """The memory service."""
    async with connect("memory", nats.settings("memory")) as bus:
        await build_memory(bus, database, embedder, MemorySettings(stage_seconds=10), index)
        yield bus
        await bus.stop()


@asynccontextmanager
async def orchestrator(nats: NatsServer, database: Database, reasoner: Reasoner) -> AsyncIterator[Bus]:
    """The orchestrator."""
    async with connect("orchestrator", nats.settings("orchestrator")) as bus:
        await build_orchestrator(
            bus,
            OrchestratorSettings(),
            open_stores(database),
            Relay(bus, PostgresOutbox(database)),
            reasoner,
            {"postgres": database.ping},
            AesSeal(None),
            CalendarReaders(1),
        )
        yield bus


async def agent(call: Call, request: AgentRef) -> AgentProfile:
    """The profile of an agent, from its content folder."""
    return profile(request.agent)


@pytest.fixture
async def model() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.fixture
async def world(
    nats_server: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None, model: GroqServer
) -> AsyncIterator[World]:
    embedder = WordEmbedder()
    async with AsyncExitStack() as stack:
        turns = await stack.enter_async_context(postgres.fresh_schema("orchestrator"))
        items = await stack.enter_async_context(postgres.fresh_schema("memory"))
        of_turns = await stack.enter_async_context(Database.open(turns, "orchestrator"))
        of_items = await stack.enter_async_context(Database.open(items, "memory"))
        index = await stack.enter_async_context(open_index(weaviate, of_items, embedder))
        shelf = await stack.enter_async_context(connect("instructions", nats_server.settings("instructions")))
        await serve(shelf, AGENT_GET, agent)
        await stack.enter_async_context(memory(nats_server, of_items, embedder, index))
        reasoner = await stack.enter_async_context(reasoning(model, budget=12_000))
        runs = await stack.enter_async_context(orchestrator(nats_server, of_turns, reasoner))  # type: ignore[arg-type]
        gateway = await stack.enter_async_context(connect("gateway", nats_server.settings("gateway")))
        yield World(gateway, runs, model, of_turns)


def someone(tenant: str | None = None) -> Principal:
    return Principal(tenant=tenant or f"t{uuid4().hex[:10]}", user=f"u{uuid4().hex[:10]}", **Persona.NOOR.rights)


@pytest.mark.req("V-048", "V-135", "V-138", "V-164", "V-168", "V-179")
async def test_a_turn_asks_the_memory_leaves_an_episode_and_its_failed_tool_is_found_by_the_next(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    who = someone()
    sample = RememberItem(kind=ItemKind.STYLE, title="LinkedIn post", text=SAMPLE)
    await ask(world.gateway, who, REMEMBER, Remember(items=(sample,)), key=uuid4().hex)
    recall = ("recall_memory", {"scope": "personal", "query_summary": "launch"})
    style = ("memory_query", {"operation": "style", "query": "LinkedIn post"})
    with caplog.at_level(logging.INFO):
        ended = await world.turn(who, "Write a LinkedIn post on the launch, mode A", [recall], [recall], [style])
    assert ended.status is TurnStatus.COMPLETED, ended.problem
    assert SAMPLE in world.told()[-1]
    lines = [record.getMessage() for record in logged(caplog, "memory")]
    assert "memory_query style: 1 results" in lines
    load = ("retrieve_instructions", {"mode": "A"})  # nobody serves it here
    await world.turn(who, "Which figures are there, mode A", [recall], [load])
    failed = await world.lived(who, "figures")
    assert (failed.outcome, failed.agent) == (TurnStatus.COMPLETED, "noor")
    assert [(tool.name, tool.ok, tool.code) for tool in failed.tools] == [
        ("recall_memory", True, None),
        ("retrieve_instructions", False, "unavailable"),
    ]
    past = ("memory_query", {"operation": "failures", "query": "what went wrong with retrieve_instructions"})
    await world.turn(who, "What went wrong, mode A", [past])
    [hit] = json.loads(world.told()[-1].partition("\n")[2].rpartition("\n")[0])
    assert (hit["source"], hit["text"].partition(":")[0]) == ("retrieve_instructions", "unavailable")


@pytest.mark.req("V-061")
async def test_a_bad_call_is_an_answer_that_names_the_operations_and_the_turn_goes_on(world: World) -> None:
    bad = ("memory_query", {"operation": "feelings", "query": "x"})
    ended = await world.turn(someone(), "How many projects, mode A", [bad])
    assert ended.status is TurnStatus.COMPLETED, ended.problem
    assert "episodes, context, style, failures" in world.told()[-1]


@pytest.mark.req("V-135")
async def test_a_turn_without_a_reply_leaves_an_episode_that_says_why(world: World) -> None:
    who = someone()
    world.model.fail("classify", Fault(status=400, times=1_000))  # so that it needs the graph, which nobody serves here
    request = SubmitTurn(idempotency_key=uuid4().hex, text="Count the okapis", agent="noor")
    await tell(world.gateway, who, TURN, request)
    await eventually(lambda: world.expired(who))
    episode = await world.lived(who, "okapis")
    assert (episode.outcome, episode.code, episode.tools) == (TurnStatus.FAILED, "expired_waiting", ())


@pytest.mark.req("V-141")
async def test_the_news_of_an_end_that_is_announced_twice_leaves_one_episode(world: World) -> None:
    who = someone()
    news = TurnEndedNews(
        turn_id=uuid4().hex,
        conversation_id=uuid4().hex,
        user=who.user,
        agent="noor",
        status=TurnStatus.COMPLETED,
        user_text="water the okapi",
        tools=(WORKED,),
    )
    for _ in range(2):
        await announce(world.orchestrator, who.tenant, TURN_ENDED, news)
    last = news.model_copy(update={"turn_id": uuid4().hex, "user_text": "feed the heron"})
    await announce(world.orchestrator, who.tenant, TURN_ENDED, last)
    for lived in ("okapi", "heron"):  # they are taken side by side
        await world.lived(who, lived)
    assert len(await world.episodes(who, "okapi")) == 1
    [use] = (await ask(world.gateway, who, TOOL_STATISTICS, AskToolStatistics())).tools
    assert (use.uses, use.successes) == (2, 2)


@pytest.mark.req("V-064")
async def test_another_user_of_the_tenant_finds_nothing_over_the_bus(world: World) -> None:
    ann = someone()
    bob = someone(ann.tenant)
    await world.turn(ann, "Count the okapis, mode A", [("recall_memory", {"scope": "personal", "query_summary": "x"})])
    await world.lived(ann, "okapis")
    for operation in MemoryOperation:
        query = MemoryQuery(operation=operation, query=f"okapis of {ann.user}, recall_memory")
        assert (await ask(world.gateway, bob, MEMORY_QUERY, query)).results == ()
    assert await world.episodes(bob, "okapis") == ()
    assert (await ask(world.gateway, bob, TOOL_STATISTICS, AskToolStatistics())).tools == ()


@pytest.mark.req("V-166")
async def test_the_memory_is_ready_only_once_it_is_wired(nats_server: NatsServer, postgres: PostgresServer) -> None:
    who, query = someone(), MemoryQuery(operation=MemoryOperation.STYLE, query="x")
    async with (
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        connect("gateway", nats_server.settings("gateway")) as gateway,
    ):
        with pytest.raises(ServiceError):
            await ask(gateway, who, HEALTH["memory"], Nothing())
        embedder = WordEmbedder()
        async with (
            open_index(None, database, embedder) as index,
            memory(nats_server, database, embedder, index),
        ):
            assert (await ask(gateway, who, HEALTH["memory"], Nothing())).ready
            assert (await ask(gateway, who, MEMORY_QUERY, query)).error is None
        with pytest.raises(Unavailable):
            await ask(gateway, who, MEMORY_QUERY, query)


@pytest.mark.req("V-124", "V-125", "V-133")
async def test_a_goal_in_other_words_finds_a_strategy_after_a_restart_with_the_local_model(
    nats_server: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None
) -> None:
    who = someone()
    async with (
        postgres.fresh_schema("memory") as where,
        LocalEmbedder.open(1) as embedder,
        connect("gateway", nats_server.settings("gateway")) as gateway,
    ):
        for _ in range(2):
            async with (
                Database.open(where, "memory") as database,
                open_index(weaviate, database, embedder) as index,  # type: ignore[arg-type]
                memory(nats_server, database, embedder, index),
            ):
                request = strategy("publish an article on LinkedIn", task_id="task-1")
                await ask(gateway, who, RECORD_STRATEGY, request, key=uuid4().hex)
        async with (
            Database.open(where, "memory") as database,
            open_index(weaviate, database, embedder) as index,  # type: ignore[arg-type]
            memory(nats_server, database, embedder, index),
        ):
            goals = {
                goal: [one.goal for one in (await ask(gateway, who, RECALL_STRATEGIES, RecallStrategies(goal=goal))).strategies]
                for goal in ("share a post with my professional network", "what is the weather in Paris")
            }
    assert goals == {
        "share a post with my professional network": ["publish an article on LinkedIn"],
        "what is the weather in Paris": [],
    }
