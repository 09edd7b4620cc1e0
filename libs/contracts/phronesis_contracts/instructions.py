"""Contracts of the instructions service: agents' profiles and texts, and a tenant's own releases of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from .agents import EDITORS, AgentLimits, AnswerSource
from .errors import BadRequest
from .messages import Event, Message, Rpc
from .principal import Agent
from .tools import Effect, Risk, Tool

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
    """For each directive, what it asks of the agent."""
    phrases: dict[str, str] = Field(default_factory=dict)
    """Fixed sentences of the agent: the fallback, and the sentences of the `extractive` reasoner."""
    bootstrap: str = ""
    """Tier 1, put before every prompt of an agent that has it."""
    release: str = ""
    """The release of the instructions that this was read from, as `4.0.0`, or `4.0.0+3` with the tenant's own third on top."""
    arms: dict[str, str] = Field(default_factory=dict)
    """For each running experiment that touches this profile, the arm that this user is in."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the agent may use, in the order in which they are told; none for an agent whose tools
    follow from its loop."""
    outside: tuple[str, ...] = ()
    """Names of outside MCP servers whose accepted tools the agent is offered besides, `*` for all of the tenant's."""
    based_on: str = ""
    """The packaged agent that a tenant's own one is made from; empty for a packaged one."""
    only_tools: bool = False
    """Whether `tools` is all that it may use, whatever its loop works with besides."""
    sources: tuple[AnswerSource, ...] | None = None
    """What it may answer from; all that its loop reads where it is not stated."""
    model: str | None = None
    """The model that its calls are made with, where it names one."""
    limits: AgentLimits = AgentLimits()


class ListAgents(Message):
    """The agents that there are."""


class AgentNames(Message):
    """Names of agents, in order."""

    agents: tuple[str, ...]


class RetrieveInstructions(Message):
    """What a case needs: the bundle of a mode, or elements by tag; exactly one of the two, or it is refused."""

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
    agents=frozenset({Agent.NOOR, Agent.MAESTRO, Agent.EDITOR}),
)
RELEASED = Event("instructions.v1.released", Released, hearers=("orchestrator", "instructions", "gateway"))

Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]{0,63}(/[A-Za-z0-9_]{1,64}){0,3}$")]
"""The name of a text: `EntityProject`, `tier1_bootstrap`, `noor/final`."""
Status = Literal["active", "deprecated", "draft"]
Version = Annotated[str, StringConstraints(pattern=r"^\d{1,9}\.\d{1,9}\.\d{1,9}$")]
MAX_TEXT = 20_000
"""Characters of one text."""
MAX_CHANGED = 500
"""Texts of one release that are the tenant's own."""


class Unpublishable(BadRequest):
    """Texts that would not work; the detail lists every fault, and nothing was published."""

    code = "instructions.unpublishable"


class TextInfo(Message):
    """One text without its content."""

    tag: str
    kind: Literal["bundle", "element"]
    tier: int | None = None
    category: str | None = None
    version: str
    status: Status
    tokens: int
    """Counted with the vocabulary of the models that are asked."""
    dependencies: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()
    own: bool = False
    """Whether it is the tenant's own, over the platform's."""


class ListInstructions(Message):
    """Which texts to list; all where nothing is stated."""

    model_config = ConfigDict(extra="forbid")

    tier: int | None = Field(default=None, ge=1, le=3)
    status: Status | None = None
    own: bool = False
    """Only the tenant's own."""


class InstructionList(Message):
    """The texts by tag."""

    release: str
    texts: tuple[TextInfo, ...]


class ShowInstruction(Message):
    """One text by its tag."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag


class InstructionShown(Message):
    """The text as it is served now."""

    release: str
    info: TextInfo
    content: str


class NewText(Message):
    """A text to publish. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag
    content: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT)
    status: Status | None = None
    version: Version | None = None
    """Higher than the one it replaces; without one, that one's third number grows."""
    dependencies: tuple[Tag, ...] | None = Field(default=None, max_length=20)
    use_cases: tuple[str, ...] | None = Field(default=None, max_length=20)


class PublishInstructions(Message):
    """Texts that become a release together, or not at all."""

    model_config = ConfigDict(extra="forbid")

    texts: tuple[NewText, ...] = Field(min_length=1, max_length=MAX_CHANGED)
    note: str = Field(default="", max_length=500)
    """Why."""
    dry_run: bool = False
    """Only say what would change."""


class TextChange(Message):
    """How one text differs."""

    tag: str
    change: Literal["added", "changed", "removed"]
    before: str | None = None
    """Its version."""
    after: str | None = None
    diff: str = ""
    """Lines in the unified form; cut where it is very long."""


class Publication(Message):
    """What became of it."""

    release: str
    number: int
    """Of the tenant's release that is active now; 0 is the platform's own texts."""
    changes: tuple[TextChange, ...]


class RollbackInstructions(Message):
    """Make an earlier release active again."""

    model_config = ConfigDict(extra="forbid")

    to: int | None = Field(default=None, ge=0)
    """Its number; 0 is the platform's own texts. Without one, the release before the active one."""


class DiffInstructions(Message):
    """Compare two releases by number; 0 is the platform's own texts."""

    model_config = ConfigDict(extra="forbid")

    before: int = Field(default=0, ge=0)
    after: int | None = Field(default=None, ge=0)
    """The active one where it is left out."""


class InstructionDiff(Message):
    """What differs, by tag."""

    before: int
    after: int
    changes: tuple[TextChange, ...]


class ListReleases(Message):
    """The tenant's releases."""

    model_config = ConfigDict(extra="forbid")


class ReleaseInfo(Message):
    """One release of the tenant."""

    number: int
    active: bool
    texts: int
    """How many of its texts are the tenant's own."""
    note: str
    by: str
    created_at: datetime


class ReleaseList(Message):
    """The newest first; older than the last hundred are not kept."""

    release: str
    releases: tuple[ReleaseInfo, ...]


LIST_INSTRUCTIONS = Rpc("instructions.v1.texts.list", ListInstructions, InstructionList)
SHOW_INSTRUCTION = Rpc("instructions.v1.texts.show", ShowInstruction, InstructionShown)
DIFF_INSTRUCTIONS = Rpc("instructions.v1.releases.diff", DiffInstructions, InstructionDiff)
PUBLISH_INSTRUCTIONS = Rpc("instructions.v1.releases.publish", PublishInstructions, Publication, timeout=15.0)
ROLLBACK_INSTRUCTIONS = Rpc("instructions.v1.releases.rollback", RollbackInstructions, Publication, timeout=15.0)
LIST_RELEASES = Rpc("instructions.v1.releases.list", ListReleases, ReleaseList)

LIST_INSTRUCTIONS_TOOL = Tool(
    "list_instructions",
    "List the texts that agents are told, with version, status and tokens.",
    LIST_INSTRUCTIONS,
    agents=EDITORS,
)
SHOW_INSTRUCTION_TOOL = Tool(
    "show_instruction", "Show one text as it is served to the caller's tenant now.", SHOW_INSTRUCTION, agents=EDITORS
)
DIFF_INSTRUCTIONS_TOOL = Tool(
    "diff_instructions", "Compare two releases of the caller's tenant, text by text.", DIFF_INSTRUCTIONS, agents=EDITORS
)
PUBLISH_INSTRUCTIONS_TOOL = Tool(
    "publish_instructions",
    "Publish texts for the caller's tenant as one release, all or none; what is not published stays the platform's own.",
    PUBLISH_INSTRUCTIONS,
    risk=Risk.HIGH,
    kind=Effect.MESSAGE,
    agents=EDITORS,
)
ROLLBACK_INSTRUCTIONS_TOOL = Tool(
    "rollback_instructions",
    "Make an earlier release of the caller's tenant active again; 0 is the platform's own texts.",
    ROLLBACK_INSTRUCTIONS,
    risk=Risk.HIGH,
    kind=Effect.MESSAGE,
    agents=EDITORS,
)
LIST_RELEASES_TOOL = Tool("list_releases", "List the releases of the caller's tenant.", LIST_RELEASES, agents=EDITORS)
