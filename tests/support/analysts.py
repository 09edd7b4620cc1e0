"""An analyst on the scripted model server: its real prompts, and neighbours that answer from a table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.answers import Analysis
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS, AgentProfile, InstructionText, RetrieveInstructions
from phronesis_contracts.memory import KEEP_MEMORY, RECALL_MEMORY, KeptMemory, RecalledMemories, Scope, Snippet
from phronesis_contracts.orchestrator import Reply
from phronesis_contracts.twin import READ_CYPHER, CypherRows
from phronesis_instructions.library.content import read_agents
from phronesis_orchestrator.turns.turn import Completed
from tests.support.chat import reasoning
from tests.support.groq_server import GroqServer
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, Stage, claim

TIER1 = "TIER 1: you are a cognitive digital twin."
ROWS = ({"department": "Health", "projects": 12}, {"department": "Transport", "projects": 8})
SNIPPET = Snippet(key="k-1", content="The board asked for Health first.", confidence=0.9, score=0.8)


def profile(name: str) -> AgentProfile:
    """An agent as its content folder has it, with a bootstrap."""
    content = next(content for content in read_agents() if content.agent == name)
    told = content.model_dump(include={"agent", "version", "loop", "stages", "prompts", "directives", "phrases"})
    return AgentProfile(**told, bootstrap=TIER1, release="4.0.0", arms={"tone": "b"})


def loaded(request: RetrieveInstructions) -> InstructionText:
    """Instructions as asked for; elements that are named `Unknown` are not there."""
    asked = (f"tier2_mode_{request.mode.lower()}",) if request.mode else request.elements or ()
    tags = tuple(tag for tag in asked if not tag.startswith("Unknown"))
    missing = tuple(tag for tag in asked if tag not in tags)
    return InstructionText(
        text="\n".join(f"How to: {tag}" for tag in tags), tags=tags, missing=missing, tokens=100 * len(tags), version="4.0.0"
    )


OWNERS: dict[str, Any] = {
    RECALL_MEMORY.subject: RecalledMemories(snippets=(SNIPPET,), scope=Scope.PERSONAL),
    RETRIEVE_INSTRUCTIONS.subject: loaded,
    READ_CYPHER.subject: CypherRows(rows=ROWS),
    KEEP_MEMORY.subject: KeptMemory(id="m-1", status="created"),
}
"""Neighbours that give each tool something."""


@dataclass
class Asked:
    """One message to an analyst, and all that came of it."""

    stage: Stage
    end: Completed
    model: GroqServer

    @property
    def reply(self) -> Reply:
        """The whole reply."""
        return self.end.reply

    @property
    def analysis(self) -> Analysis:
        """Its analysis."""
        assert self.reply.analysis is not None
        return self.reply.analysis

    @property
    def subjects(self) -> list[str]:
        """What the neighbours were asked, in order."""
        return [subject for subject, _, _ in self.stage.neighbours.questions]

    def request(self, at: int) -> dict[str, Any]:
        """The body of a call to the model."""
        request = self.model.calls[at].request
        assert request is not None
        return request

    def told(self) -> list[str]:
        """What the tools gave, as the model was shown it in the last call."""
        return [message["content"] for message in self.request(-1)["messages"] if message["role"] == "tool"]


@asynccontextmanager
async def analyst(
    server: GroqServer, agent: str = "noor", owners: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[Stage]:
    """A runner whose reasoner is the scripted model and whose agent is an analyst."""
    neighbours = FakeNeighbours(profiles={agent: profile(agent)}, owners={**OWNERS, **(owners or {})})
    async with reasoning(server, budget=12_000) as model:
        yield Stage(model, neighbours, FakeConversations(), **more)  # type: ignore[arg-type]  # a model in a reasoner's place


async def ask(
    server: GroqServer,
    text: str,
    agent: str = "noor",
    role: Persona = Persona.NOOR,
    owners: dict[str, Any] | None = None,
    **more: Any,
) -> Asked:
    """Ask an analyst; the turn must end well."""
    async with analyst(server, agent, owners, **more) as stage:
        end = await stage.run(claim(text, agent=agent, who=Principal(tenant="acme", user="ann", **role.rights)))
    assert isinstance(end, Completed), end
    return Asked(stage, end, server)
