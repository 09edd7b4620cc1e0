"""Asking an agent without a model: whole turns over a twin in a real graph, with the graph's own validation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.answers import Analysis
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.ontology import VOCABULARY
from phronesis_contracts.orchestrator import Reply
from phronesis_contracts.twin import Upsert
from phronesis_orchestrator.conversations.history import Past, PastMessage
from phronesis_orchestrator.models.reasoner import RULES
from phronesis_orchestrator.turns.turn import Completed
from phronesis_orchestrator.understanding.plan import NO_FOCUS, Focus
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.support.analysts import profile
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.plans import GraphNeighbour
from tests.support.servers import GraphServer
from tests.support.twins import call, load, reasoning, telling
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, Stage, claim


@dataclass
class TwinNeighbours(FakeNeighbours):
    """Neighbours whose graph is real; memory holds nothing, unless it is given."""

    graph: GraphNeighbour | None = None
    """`None` where the graph is away."""
    stores: Stores | None = None

    async def ask(self, who: Principal, rpc: Any, request: Any, *, key: str | None = None) -> Any:
        if self.graph is None or self.stores is None or not rpc.subject.startswith("graph."):
            return await super().ask(who, rpc, request, key=key)
        self.questions.append((rpc.subject, request, key))
        if rpc.subject == VOCABULARY.subject:
            return await telling(self.stores).vocabulary(call(who), request)
        return await self.graph.ask(who, rpc, request, key=key)


@dataclass
class Talk(FakeConversations):
    """A conversation that remembers what it is about, as the store does."""

    focus: Focus = NO_FOCUS

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        return replace(await super().recent(tenant, conversation_id), focus=self.focus)


@dataclass
class Asked:
    """The last turn of a talk."""

    end: Completed
    stage: Stage

    @property
    def reply(self) -> Reply:
        """The whole reply."""
        return self.end.reply


@dataclass
class Asker:
    """Somebody who asks about one twin."""

    stores: Stores
    who: Principal
    agent: str = "noor"
    memory: AugmentedMemoryContext = field(
        default_factory=lambda: AugmentedMemoryContext(user_id="ann", key_phrases=("x",), memory_units=())
    )
    owners: dict[str, Any] = field(default_factory=dict)
    reasoner: Any = RULES
    vocabularies: Vocabularies = field(init=False)
    neighbours: TwinNeighbours = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = TwinNeighbours(
            profiles={name: profile(name) for name in ("noor", "dialogue")},
            memory=self.memory,
            owners=self.owners,
            graph=GraphNeighbour(reasoning(self.stores)),
            stores=self.stores,
        )
        self.vocabularies = Vocabularies(self.neighbours)

    async def turn(self, text: str, *before: str, talk: Talk | None = None, **more: Any) -> Asked:
        """The turn of a message, after earlier messages of the user in one conversation."""
        talk = talk or Talk()
        for one in before:
            end = (await self.turn(one, talk=talk)).end
            talk.focus = end.focus or talk.focus
            talk.directive = end.directive
            said = end.reply.analysis.answer if end.reply.analysis else end.reply.user_response
            talk.history = (*talk.history, *_messages(one, said))
        self.neighbours.questions.clear()
        self.neighbours.asked.clear()
        stage = Stage(self.reasoner, self.neighbours, talk, vocabularies=self.vocabularies)
        end = await stage.run(claim(text, agent=self.agent, who=self.who, **more))
        assert isinstance(end, Completed), end
        return Asked(end, stage)

    async def ask(self, text: str, *before: str) -> Analysis:
        """An analyst's answer."""
        analysis = (await self.turn(text, *before)).reply.analysis
        assert analysis is not None
        return analysis

    async def say(self, text: str, *before: str) -> str:
        """The text of an agent's reply."""
        return (await self.turn(text, *before)).reply.user_response

    def of(self, agent: str, **more: Any) -> Asker:
        """The same person, who asks another agent, about the same twin: what its words mean is not read and built again."""
        other = Asker(self.stores, self.who, agent, **more)
        other.vocabularies = self.vocabularies
        return other


def _messages(text: str, said: str) -> tuple[PastMessage, PastMessage]:
    return PastMessage("user", text), PastMessage("assistant", said)


@asynccontextmanager
async def asker_of(server: GraphServer, folder: Path, batches: Iterable[Upsert]) -> AsyncIterator[Asker]:
    """Somebody whose tenant holds batches."""
    async with opened(server, folder) as stores:
        who = somebody()
        await load(stores, who, batches)
        yield Asker(stores, who)


def in_parts(batches: Iterable[Upsert]) -> list[Upsert]:
    """The same nodes, then the same relationships, in larger batches."""
    whole = list(batches)
    nodes = [one for batch in whole for one in batch.nodes]
    links = [one for batch in whole for one in batch.relationships]
    return [
        *(Upsert(nodes=tuple(nodes[at : at + 250])) for at in range(0, len(nodes), 250)),
        *(Upsert(relationships=tuple(links[at : at + 500])) for at in range(0, len(links), 500)),
    ]
