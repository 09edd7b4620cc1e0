"""Contracts of the instructions service: an agent's profile with its prompts, and the news of a release."""

from __future__ import annotations

from pydantic import Field

from .messages import Event, Message, Rpc


class AgentRef(Message):
    """One agent by name."""

    agent: str = Field(min_length=1, max_length=64)


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


class Released(Message):
    """Instructions changed; caches of these tags are stale."""

    tags: tuple[str, ...]
    version: str


AGENT_GET = Rpc("instructions.v1.agent.get", AgentRef, AgentProfile)
RELEASED = Event("instructions.v1.released", Released, hearers=("orchestrator",))
