"""The agent and those it works with: each asked in its place, none of them a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grimp
import pytest

from phronesis_contracts import Principal
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, Media, MediaKind
from phronesis_contracts.memory import AugmentedMemoryContext, Profile
from phronesis_orchestrator.conversations.history import Past
from phronesis_orchestrator.models.reasoner import Answer, ComposedReply, Fault, RouteDecision, TurnContext
from phronesis_orchestrator.turns.turn import Claim, Completed
from tests.unit.orchestrator.fakes import (
    FakeConversations,
    FakeJournal,
    FakeNeighbours,
    FakeTurns,
    ScriptedReasoner,
    Stage,
    claim,
    direct,
    query,
    reply,
)

TOOLS = {
    MediaKind.IMAGE: "vision.caption",
    MediaKind.AUDIO: "audio.transcribe",
    MediaKind.DOCUMENT: "document.extract_text",
}
_STORES = ("asyncpg", "psycopg", "neo4j", "phronesis_postgres", "phronesis_orchestrator.app.")
Told = Callable[[str], None]


@dataclass
class Neighbours(FakeNeighbours):
    """Neighbours that tell when they are asked."""

    tell: Told = print

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        self.tell("instructions")
        return await super().agent(who, name)

    async def profile(self, who: Principal) -> Profile:
        self.tell("users")
        return await super().profile(who)

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        self.tell("retrieval")
        return await super().retrieve(who, phrases, budget, limit)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        self.tell(TOOLS[medium.kind])
        return await super().medium_text(who, medium, limit)


@dataclass
class Conversations(FakeConversations):
    """A conversation that tells when it is read."""

    tell: Told = print

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        self.tell("conversations")
        return await super().recent(tenant, conversation_id)


@dataclass
class Model(ScriptedReasoner):
    """A model that tells when it is asked."""

    tell: Told = print

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        self.tell("model: router")
        return await super().route(turn, fault)

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        self.tell("model: final")
        return await super().compose(turn, draft, memory, fault)


@dataclass
class Turns(FakeTurns):
    """A store of turns that tells when one ends."""

    tell: Told = print

    async def end(self, claim: Claim, end: Any, record: Any = None, profile: Any = None) -> None:
        self.tell("end")
        await super().end(claim, end, record, profile)


@dataclass
class World:
    """A runner with collaborators that are told apart, and the order in which they were asked."""

    stage: Stage
    asked: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, *routes: Answer[RouteDecision], documents: dict[str, Any] | None = None) -> World:
        asked: list[str] = []
        stage = Stage(
            Model(list(routes), [reply() for _ in routes], tell=asked.append),
            Neighbours(known={"name": "Ann"}, documents=documents or {}, tell=asked.append),
            Conversations(tell=asked.append),
            turns=Turns(tell=asked.append),
        )
        return cls(stage, asked)


def _read(id: str, kind: MediaKind) -> ExtractedText:
    return ExtractedText(media_id=id, name=id, type="-", kind=kind, text=f"Words of {id}.", engine="test")


@pytest.mark.req("D-125", "D-127")
async def test_each_collaborator_is_asked_once_and_in_its_place() -> None:
    documents = {kind.value: _read(kind.value, kind) for kind in TOOLS}
    world = World.of(query("Phoenix"), documents=documents)
    end = await world.stage.run(claim("What is in these?", tuple(documents)))
    assert isinstance(end, Completed)
    known, media, rest = set(world.asked[:3]), set(world.asked[3:6]), world.asked[6:]
    assert known == {"conversations", "users", "instructions"}
    assert media == set(TOOLS.values())
    assert rest == ["model: router", "retrieval", "model: final", "end"]
    (context,) = world.stage.reasoner.contexts
    assert context.profile == {"name": "Ann"}


@pytest.mark.req("D-037", "D-041")
async def test_the_package_is_built_once_in_a_turn_before_the_router_and_anew_in_the_next() -> None:
    world = World.of(direct(), direct())
    for name in ("Ann", "Anna"):
        world.stage.neighbours.known = {"name": name}
        world.stage.turns.end_of, world.stage.journal = None, FakeJournal()
        await world.stage.run(claim("Hello"))
    once = ["conversations", "end", "instructions", "model: final", "model: router", "users"]
    half = len(world.asked) // 2
    assert [sorted(part) for part in (world.asked[:half], world.asked[half:])] == [once, once]
    assert [part.index("model: router") for part in (world.asked[:half], world.asked[half:])] == [3, 3]
    assert [context.profile for context in world.stage.reasoner.contexts] == [{"name": "Ann"}, {"name": "Anna"}]


@pytest.mark.req("D-053", "D-062")
async def test_names_and_vague_expressions_reach_retrieval_as_the_router_gave_them() -> None:
    phrases = ("Project Halcyon", "last week's talk", "that feeling of being stuck")
    world = World.of(query(*phrases))
    await world.stage.run(claim())
    assert world.stage.neighbours.asked == [phrases]


@pytest.mark.req("D-129", "D-T01")
def test_the_agent_reaches_no_store_but_by_its_collaborators() -> None:
    packages = ("phronesis_orchestrator", "phronesis_postgres", "phronesis_contracts")
    graph = grimp.build_graph(*packages, include_external_packages=True, cache_dir=None)

    def stores(module: str, *, whole: bool) -> set[str]:
        reached = graph.find_upstream_modules(module, as_package=whole)
        return {name for name in reached if f"{name}.".startswith(_STORES)}

    agent = {"turns.run": False, "turns.execution": False, "agents": True}
    assert [found for name, whole in agent.items() if (found := stores(f"phronesis_orchestrator.{name}", whole=whole))] == []
    assert {"asyncpg", "phronesis_postgres.pool"} <= stores("phronesis_orchestrator.__main__", whole=False)
