"""Contracts of a tenant's own agents: what one is made of, and how its versions are published, compared and taken back."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from .errors import BadRequest
from .messages import WRITTEN_AS_NUMBER, Message, Rpc
from .principal import Agent
from .tools import Effect, Risk, Tool

EDITORS = frozenset({Agent.EDITOR})
"""Who changes what a tenant's agents are told."""
DEFAULT_BASE = "dialogue"
"""The packaged agent that an own one is made from where it names neither a base nor tools."""
DEFAULT_TOOL_BASE = "nova"
"""The same where it names tools: one that calls them."""
MAX_INSTRUCTIONS = 8_000
"""Characters of an agent's own instructions."""
MAX_AGENTS = 100
"""Own agents of a tenant."""
MAX_AGENT_VERSIONS = 50
"""Versions of an agent that are kept; of more the oldest go, but never the active one."""
MAX_TOOLS = 200
MAX_TOOL_CALLS = 20
"""Tool calls of one turn, whoever runs it."""
_NUMBER = 2**31 - 1


class AgentRefused(BadRequest):
    """An agent that cannot be published so; `field` names what is at fault."""

    code = "instructions.agent_refused"


class AnswerSource(StrEnum):
    """What an agent may answer from."""

    DOCUMENTS = "documents"
    """What is attached to the conversation."""
    MEMORY = "memory"
    """What the caller's memory holds: items, facts, scopes, profile."""
    TWIN = "twin"
    CONSTITUTION = "constitution"
    """The constitutional graph."""


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("something is named twice")
    return values


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it holds a NUL character")
    return text


AgentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)]
"""Of an own agent: `contract-desk`."""
PhraseName = Literal[
    "greeting", "thanks", "farewell", "about", "nothing_found", "apology", "no_data", "cannot", "by_rules", "none"
]
"""Fixed sentences that an own agent may state in its own words."""
Text = Annotated[str, AfterValidator(_storable)]
Phrase = Annotated[Text, Field(min_length=1, max_length=500, pattern=r"\S")]
AllowedTool = Annotated[str, Field(max_length=100, json_schema_extra={"format": "tool-name"})]
"""A tool by name, or `outside.<server>` and `outside.*` for accepted tools of outside MCP servers."""
_UNIQUE = Field(min_length=1, json_schema_extra={"uniqueItems": True})
AnswerSources = Annotated[tuple[AnswerSource, ...], _UNIQUE, AfterValidator(_each_once)]


class AgentLimits(Message):
    """Bounds of one turn. What is left out, or above what the installation allows, is bounded as for every agent."""

    model_config = ConfigDict(extra="forbid")

    tokens: Annotated[int, Field(ge=500, le=10_000_000), WRITTEN_AS_NUMBER] | None = None
    """Tokens of its model calls, read and written together, after which none is begun any more and rules answer."""
    tool_calls: Annotated[int, Field(ge=1, le=MAX_TOOL_CALLS), WRITTEN_AS_NUMBER] | None = None
    """Tool calls of one message, 1 to 20."""
    seconds: Annotated[float, Field(ge=1, le=3_600), WRITTEN_AS_NUMBER] | None = None
    """Seconds that the work on a message may take."""


class AgentDefinition(Message):
    """An agent of a tenant's own, as its administrators describe it; a field that there is not is refused."""

    model_config = ConfigDict(extra="forbid")

    name: AgentName
    """Its name: lower-case words joined by hyphens, 40 characters at most, no packaged agent's."""
    description: Text = Field(default="", max_length=300)
    """What it is for; shown where agents are listed, and said of itself where it has no phrase `about`."""
    based_on: str | None = Field(default=None, min_length=1, max_length=64, json_schema_extra={"format": "packaged-agent"})
    """The packaged agent whose loop, stages and prompts it has; `dialogue` by default, and `nova` where tools are listed."""
    instructions: Text = Field(default="", max_length=MAX_INSTRUCTIONS)
    """What it is to do and how, in plain words; stands before the prompts of its base."""
    phrases: dict[PhraseName, Phrase] = Field(default_factory=dict)
    """Fixed sentences of its own, in place of its base's."""
    tools: Annotated[tuple[AllowedTool, ...], Field(min_length=1, max_length=MAX_TOOLS)] | None = None
    """The tools that it may call, in the order in which it is told of them, and no other; its base's where left out."""
    sources: AnswerSources | None = None
    """What it may answer from. Where left out everything that its base reads, or, where tools are listed, what those work on
    and what is attached."""
    model: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[!-~]+$")
    """The model that its calls are made with, one of those that `models.get` lists."""
    limits: AgentLimits = AgentLimits()
    """Bounds of the work on one message."""

    @property
    def base(self) -> str:
        """The packaged agent that it is made from."""
        return self.based_on or (DEFAULT_BASE if self.tools is None else DEFAULT_TOOL_BASE)


class PublishAgent(AgentDefinition):
    """An agent to publish as a new version, which becomes the active one."""

    note: Text = Field(default="", max_length=500)
    """Why it is published; shown in the list of versions."""
    dry_run: bool = Field(default=False, strict=True)
    """Whether to check it and say what would change, and change nothing."""

    def definition(self) -> AgentDefinition:
        """What is kept of it."""
        return AgentDefinition.model_validate(self.model_dump(exclude={"note", "dry_run"}, exclude_unset=True))


class AgentPublished(Message):
    """An agent's active version, or after a dry run the one that would be."""

    name: str
    """The agent's name."""
    version: int
    """Number of the active version; after a dry run, the number that the next one would get."""
    changed: tuple[str, ...] = ()
    """The fields that differ from the version before; none where nothing does, and then no version was made."""
    diff: str = ""
    """Lines in the unified form; cut where it is very long."""
    dry_run: bool = False
    """Whether nothing was published, and this only says what would change."""


class AgentInfo(Message):
    """An agent of the tenant: a packaged one, or one of its own."""

    name: str
    """The name to send messages to it by."""
    own: bool = False
    """Whether it is one of the tenant's own; false for a packaged agent."""
    description: str = ""
    """What it is for, in a sentence or two; empty where nobody wrote one."""
    based_on: str = ""
    """The packaged agent that an own one is made from."""
    version: int = 0
    """Number of the active version of an own one; 0 for a packaged agent."""
    at: datetime | None = None
    """When that version was published."""
    by: str | None = None
    """The user who published that version."""


class ListTenantAgents(Message):
    """Which agents to list; all by default."""

    model_config = ConfigDict(extra="forbid")

    own: bool = False
    """Only the tenant's own."""


class TenantAgents(Message):
    """The agents by name."""

    agents: tuple[AgentInfo, ...]
    """The agents, by name."""


class GetAgent(Message):
    """An agent by name."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=64)
    version: int | None = Field(default=None, ge=1, le=_NUMBER)
    """Of an own agent; the active one by default."""


class AgentShown(Message):
    """An agent, with what it is made of."""

    agent: AgentInfo
    """What a list of agents says of it."""
    active: bool = True
    """Whether the version shown is the active one."""
    definition: AgentDefinition | None = None
    """As it was published; absent of a packaged agent."""
    loop: str = ""
    """The loop that it runs, which is its base's."""
    stages: tuple[str, ...] = ()
    """The stages that its loop goes through for a message, in order."""
    tools: tuple[str, ...] = ()
    """The tools of its allow-list, its own or its base's; none where they follow from its loop."""
    phrases: dict[str, str] = Field(default_factory=dict)
    """Its fixed sentences by name, its own where it states one and its base's otherwise."""


class AgentByName(Message):
    """An own agent by name."""

    model_config = ConfigDict(extra="forbid")

    name: AgentName


class AgentVersion(Message):
    """One version."""

    version: int
    """Number of the version, from 1."""
    active: bool
    """Whether messages are answered by this version."""
    note: str = ""
    """What was said when it was published."""
    by: str
    """The user who published it."""
    at: datetime
    """When it was published."""


class AgentVersions(Message):
    """The versions that are kept, the newest first. None is active of a deleted agent."""

    name: str
    """The agent's name."""
    versions: tuple[AgentVersion, ...]
    """The versions that are kept, the newest first."""


class DiffAgent(Message):
    """Two versions to compare."""

    model_config = ConfigDict(extra="forbid")

    name: AgentName
    before: int = Field(ge=1, le=_NUMBER)
    after: int | None = Field(default=None, ge=1, le=_NUMBER)
    """The active one by default."""


class AgentDiff(Message):
    """How the second version differs from the first."""

    name: str
    """The agent's name."""
    before: int
    """The version compared from."""
    after: int
    """The version compared to."""
    changed: tuple[str, ...] = ()
    """Names of the fields that differ."""
    diff: str = ""
    """The difference in the unified form; cut where it is very long."""


class RollBackAgent(Message):
    """A version to make the active one again."""

    model_config = ConfigDict(extra="forbid")

    name: AgentName
    version: int | None = Field(default=None, ge=1, le=_NUMBER)
    """The one before the active one by default; of a deleted agent its newest."""
    dry_run: bool = False


class AgentDeleted(Message):
    """An agent that nobody can talk to any more. Its versions stay, and a rollback brings it back."""

    name: str
    """The agent's name."""
    deleted: bool
    """False where it was deleted before."""


PUBLISH = Rpc("orchestrator.v1.agents.publish", PublishAgent, AgentPublished, timeout=15.0)
KEEP_AGENT = Rpc("instructions.v1.agents.publish", PublishAgent, AgentPublished, timeout=10.0)
"""What a turn needs was checked by the orchestrator, which alone calls it; everything else is checked here."""
LIST = Rpc("instructions.v1.agents.list", ListTenantAgents, TenantAgents)
SHOW = Rpc("instructions.v1.agents.show", GetAgent, AgentShown)
VERSIONS = Rpc("instructions.v1.agents.versions", AgentByName, AgentVersions)
DIFF = Rpc("instructions.v1.agents.diff", DiffAgent, AgentDiff)
ROLL_BACK = Rpc("instructions.v1.agents.rollback", RollBackAgent, AgentPublished, timeout=15.0)
DELETE = Rpc("instructions.v1.agents.delete", AgentByName, AgentDeleted, timeout=15.0)

PUBLISH_AGENT_TOOL = Tool(
    "agents.publish",
    "Publish an agent of the tenant's own: instructions, tools, sources, model, limits; or report what would change (dry run).",
    PUBLISH,
    risk=Risk.HIGH,
    kind=Effect.MESSAGE,
    agents=EDITORS,
)
LIST_AGENTS_TOOL = Tool("agents.list", "The agents that the caller may talk to: packaged ones and the tenant's own.", LIST)
SHOW_AGENT_TOOL = Tool("agents.get", "An agent, with what it is made of.", SHOW, agents=EDITORS)
AGENT_VERSIONS_TOOL = Tool(
    "agents.versions", "The versions of one of the tenant's own agents, and which is active.", VERSIONS, agents=EDITORS
)
DIFF_AGENT_TOOL = Tool("agents.diff", "Compare two versions of one of the tenant's own agents.", DIFF, agents=EDITORS)
ROLL_BACK_AGENT_TOOL = Tool(
    "agents.rollback",
    "Make an earlier version of one of the tenant's own agents active again.",
    ROLL_BACK,
    risk=Risk.HIGH,
    kind=Effect.MESSAGE,
    agents=EDITORS,
)
DELETE_AGENT_TOOL = Tool(
    "agents.delete",
    "Delete one of the tenant's own agents; a rollback brings it back.",
    DELETE,
    risk=Risk.HIGH,
    agents=EDITORS,
)

_READ_BY = (
    ("memory.v1.constitution.", AnswerSource.CONSTITUTION),
    ("memory.v1.documents.", AnswerSource.DOCUMENTS),
    ("memory.", AnswerSource.MEMORY),
    ("graph.v1.knowledge.", AnswerSource.MEMORY),
    ("graph.v1.constitution.", AnswerSource.CONSTITUTION),
    ("graph.v2.constitution.", AnswerSource.CONSTITUTION),
    ("graph.", AnswerSource.TWIN),
    ("media.v1.document.", AnswerSource.DOCUMENTS),
    ("media.v1.vision.", AnswerSource.DOCUMENTS),
    ("media.v1.audio.", AnswerSource.DOCUMENTS),
    ("orchestrator.v1.session.", AnswerSource.CONSTITUTION),
    ("orchestrator.v1.workload.", AnswerSource.CONSTITUTION),
)
"""By the beginning of a subject, the longer before the shorter."""


def source_of(tool: Tool[Any, Any]) -> AnswerSource | None:
    """What a tool reads or writes; `None` for one that works on none of the four."""
    return next((source for start, source in _READ_BY if tool.rpc.subject.startswith(start)), None)
