"""Contracts of the instructions service: an agent's profile with its prompts, and the news of a release."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from .messages import Event, Message, Rpc
from .principal import Role
from .tools import Tool

MAX_TEXT_BYTES = 400_000
"""Bytes of the texts that one answer holds; who asks for more is told to ask for less."""


class AgentRef(Message):
    """One agent by name."""

    agent: str = Field(min_length=1, max_length=64)
    release: int | None = Field(default=None, ge=0)
    """As of this release of the tenant, for a replay, and without experiments; 0 is the platform's own. Else as of now."""


class AgentProfile(Message):
    """How an agent runs, and every text it says or is told. A new agent is a profile and a content folder."""

    agent: str
    version: str
    loop: str
    """`quick`, `router`, `tools` or `task`."""
    stages: tuple[str, ...]
    prompts: dict[str, str]
    """Prompt templates by purpose: `router`, `final`, `repair`. Placeholders are `{{name}}`."""
    directives: dict[str, str] = Field(default_factory=dict)
    """For each directive, what it asks of the agent (D-120)."""
    phrases: dict[str, str] = Field(default_factory=dict)
    """Fixed sentences of the agent, as the fallback of D-140 and the sentences of the `extractive` reasoner."""
    bootstrap: str = ""
    """Tier 1, put before every prompt of an agent that has it (N-018)."""
    release: str = ""
    """The release of the instructions that this was read from, as `4.0.0`, or `4.0.0+3` with the tenant's own third on top."""
    arms: dict[str, str] = Field(default_factory=dict)
    """For each running experiment that touches this profile, the arm that this user is in."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the agent may use, in the order in which they are told (O-229); none for an agent whose tools
    follow from its loop."""
    outside: tuple[str, ...] = ()
    """Names of outside MCP servers whose accepted tools the agent is offered besides, `*` for all of the tenant's."""


class ListAgents(Message):
    """The agents that there are."""


class AgentNames(Message):
    """Names of agents, in order."""

    agents: tuple[str, ...]


class RetrieveInstructions(Message):
    """What a case needs: the bundle of a mode, or elements by tag; exactly one of the two, or it is refused (N-109)."""

    model_config = ConfigDict(extra="forbid")

    mode: Literal["A", "B", "C", "D"] | None = None
    """A data mode: the bundle of tier 2 for it."""
    elements: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=64)
    """Tags of tier 3, as few as the question needs."""


class RetrieveAt(Message):
    """`RetrieveInstructions` as of a release of the tenant, for a replay, and without experiments."""

    release: int = Field(ge=0)
    wanted: RetrieveInstructions


class InstructionText(Message):
    """The texts asked for, as one."""

    text: str
    tags: tuple[str, ...]
    """What it holds, in order: as asked, each followed by what it depends on."""
    missing: tuple[str, ...] = ()
    """Tags that there are not."""
    tokens: int
    version: str
    """The release that it was read from."""
    arms: dict[str, str] = Field(default_factory=dict)
    """For each running experiment that touches these texts, the arm that this user is in."""


class Released(Message):
    """Instructions changed, for the event's tenant or, from the platform's own, for all; caches of these tags are stale."""

    tags: tuple[str, ...]
    version: str


AGENT_GET = Rpc("instructions.v1.agent.get", AgentRef, AgentProfile)
AGENT_LIST = Rpc("instructions.v1.agent.list", ListAgents, AgentNames)
RETRIEVE_INSTRUCTIONS = Rpc("instructions.v1.retrieve", RetrieveInstructions, InstructionText)
RETRIEVE_AT = Rpc("instructions.v1.retrieve.at", RetrieveAt, InstructionText)
RETRIEVE_INSTRUCTIONS_TOOL = Tool(
    "retrieve_instructions",
    "Step 2, recollect: load how to work on this case, either the bundle of a data mode (A to D) or single elements of the"
    " ontology, charts and patterns by tag. Ask for the mode first, then once for the few elements that the question needs.",
    RETRIEVE_INSTRUCTIONS,
    roles=frozenset({Role.NOOR, Role.MAESTRO, Role.EDITOR, Role.ADMIN}),
)
RELEASED = Event("instructions.v1.released", Released, hearers=("orchestrator", "instructions", "gateway"))
