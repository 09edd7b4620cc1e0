"""Contracts of an answer: the analysis that it is, the trace of what it rests on, and its replay."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from .errors import Conflict, NotFound
from .messages import WRITTEN_AS_NUMBER, Message, Rpc
from .tools import Tool

Mode = Literal["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]
"""What a message asks for. A to D read data, E to J are answered at once."""
DATA_MODES: frozenset[str] = frozenset("ABCD")
GAPS_TITLE = "What is missing"
"""Title of every table of gaps, by which a reader of an answer knows it."""


class VisualizationType(StrEnum):
    """The closed set of what can be drawn."""

    COLUMN = "column"
    LINE = "line"
    PIE = "pie"
    RADAR = "radar"
    SCATTER = "scatter"
    BUBBLE = "bubble"
    COMBO = "combo"
    TABLE = "table"
    HTML = "html"


class Visualization(Message):
    """One chart, table or report. `config` names the fields of `data` as its type asks for them."""

    type: VisualizationType
    """What to draw."""
    title: str = Field(min_length=1, max_length=200)
    """Its heading, 200 characters at most."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Which fields of `data` go where: axes, series, labels. What it holds depends on the type."""
    data: list[dict[str, Any]] | str
    """Rows; for `html` one sanitised fragment."""


class MemoryProcess(Message):
    """What was understood, and how the answer came about."""

    intent: str = Field(min_length=1)
    """What the message was taken to ask."""
    thought_trace: str = Field(min_length=1)
    """How the answer came about, in a few sentences."""


class AnswerData(Message):
    """The rows that the answer rests on, and figures over them."""

    query_results: tuple[dict[str, Any], ...] = ()
    """The rows that were read; each is an object of column and value."""
    summary_stats: dict[str, Any] = Field(default_factory=dict)
    """Figures over those rows, such as counts and sums, by name."""


class Analysis(Message):
    """A whole answer, in every mode."""

    mode: Mode
    """What the message asked for. Data was read in the first four. A: one fact or thing; B: several hops, effects or gaps; C:
    a follow-up that needs new data; D: what if; E: something has to be asked back; F: ideas; G: what the agent is; H: an
    explanation of terms; I: small talk; J: it was not clear."""
    memory_process: MemoryProcess
    """What was understood, and how the answer came about."""
    answer: str = Field(min_length=1)
    """Markdown, or HTML that was sanitised."""
    analysis: tuple[str, ...] = ()
    """Insights, one sentence each, the most important first."""
    data: AnswerData = AnswerData()
    """The rows that the answer rests on."""
    visualizations: tuple[Visualization, ...] = ()
    """Charts, tables and reports to show with the answer."""
    cypher_executed: str | None = None
    """What was read from the graph, joined with `;`; absent where nothing was."""
    confidence: float = Field(ge=0.0, le=1.0)
    """How sure the answer is, 0 to 1."""


MAX_STAGES = 200
"""Stages of one turn that a trace holds."""
MAX_CALLS = 200
"""Tool calls of one turn that a trace holds, and model calls."""
MAX_USED = 200
"""Memories, facts and gaps that a trace holds of each."""


class NotRecorded(NotFound):
    """A replay asked for something that the turn it repeats did not ask for; nothing is asked in its place."""

    code = "not_recorded"


class TurnForgotten(NotFound):
    """The texts of the turn went with a memory that was forgotten: it can be neither shown nor run. The detail says which."""

    code = "turn_forgotten"


class NotReplayable(Conflict):
    """The turn cannot be run again; the detail says why."""

    code = "not_replayable"


class StageRun(Message):
    """One stage, in the order in which they began."""

    name: str
    """The stage's name."""
    ms: int
    """Milliseconds that it took."""
    outcome: str
    """`ok`, or the code of the error that ended it."""


class UsedMemory(Message):
    """A memory that the answer could rest on. Its text is with its owner."""

    id: str
    """Its id; of a scoped memory its scope and key."""
    kind: str
    """Which kind of memory it is, for example `fact`, `note` or `message`."""
    score: float | None = None
    """How well it fitted the message, 0 to 1; absent where it was not searched for."""
    forgotten: bool = False
    """Whether it has been forgotten since."""


class UsedFact(Message):
    """A node that was read."""

    id: str
    """The node's id."""
    type: str = ""
    """The node's type; empty where it was not read."""


class FoundGap(Message):
    """A gap that was found around what was read."""

    type: str
    """The kind of gap."""
    node: str
    """Id of the node that lacks something."""
    missing: str = ""
    """What it lacks; empty where the kind says it all."""


class ToolCalled(Message):
    """One question to a tool's owner."""

    step: str = ""
    """The journalled step; empty for a read that is not journalled."""
    name: str
    """The tool's name."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What it was called with, secrets masked and long texts cut."""
    outcome: str
    """`ok`, or the code of the error."""
    ms: int
    """Milliseconds that the call took."""


class ModelCalled(Message):
    """One call to a model."""

    step: str
    """The journalled step that it was made for."""
    purpose: str
    """What it was for, for example `understand` or `formulate`."""
    model: str
    """The model's name."""
    input_tokens: int
    """Tokens that the model read, cached ones included."""
    output_tokens: int
    """Tokens that the model wrote, reasoning included."""
    cached_tokens: int
    """Tokens of the input that came from the provider's cache."""
    reasoning_tokens: int
    """Tokens of the output that were reasoning."""
    cost_usd: float | None = None
    """What it cost in US dollars; absent where the price is not known."""
    ms: int
    """Milliseconds that it took, repeats included."""
    attempts: int
    """How often the model was asked before this outcome."""
    outcome: str
    """`ok`, `fault` for an answer that broke its schema, or the code of the error."""


class AnswerTrace(Message):
    """The whole trace of an answer, as it was committed: ids and figures, no text of a memory."""

    turn_id: str
    """The turn that the answer ended."""
    agent: str
    """The agent that answered."""
    reasoner: str = ""
    """What wrote the answer: the name of a model's provider, or `extractive` where rules did."""
    version: str = ""
    """Version of the agent's profile."""
    release: str = ""
    """The release of the instructions that the agent ran with."""
    arms: dict[str, str] = Field(default_factory=dict)
    """The arm of each running experiment that the user was in."""
    mode: str | None = None
    """An analyst's mode, `A` to `J`; absent for other agents."""
    tone: str | None = None
    """How the message sounded: `urgent`, `frustrated`, `positive`, `negative` or `neutral`."""
    tier: str | None = None
    """How hard the message was thought about: `flash`, `haiku`, `sonnet` or `quality`."""
    intent: str | None = None
    """What the message was taken to ask."""
    decision: str | None = None
    """What a router decided to do with the message, for example `query_memory`."""
    planning: str | None = None
    """What became of a plan that a model was asked for: `accepted`, `repaired`, `rejected`, `failed` or `none`."""
    prose: str | None = None
    """What became of a reply that a model wrote, in the same words as `planning`."""
    plan: tuple[str, ...] = ()
    """The plan that was worked through, a line for each step."""
    stages: tuple[StageRun, ...] = ()
    """The stages of the agent's loop, in the order in which they began; 200 at most."""
    memories: tuple[UsedMemory, ...] = ()
    """The memories that the answer could rest on; 200 at most."""
    facts: tuple[UsedFact, ...] = ()
    """The nodes of the graph that were read; 200 at most."""
    gaps: tuple[FoundGap, ...] = ()
    """The gaps that were found around those nodes; 200 at most."""
    tool_calls: tuple[ToolCalled, ...] = ()
    """The calls of tools, in order; 200 at most."""
    model_calls: tuple[ModelCalled, ...] = ()
    """The calls of models, in order; 200 at most."""
    degraded: tuple[str, ...] = ()
    """What the turn had to do without, for example `memory` or `model`."""
    confidence: float | None = None
    """How sure an analyst's answer is, 0 to 1; absent for other agents."""
    cut: bool = False
    """Whether more happened than a trace holds."""


class TraceOfTurn(Message):
    """Whose trace is wanted."""

    model_config = ConfigDict(extra="forbid")

    turn_id: str


class ReplayTurn(Message):
    """Run an ended turn again on what was recorded of it."""

    model_config = ConfigDict(extra="forbid")

    turn_id: str
    with_instructions: Annotated[int, Field(ge=0, le=2**31 - 1), WRITTEN_AS_NUMBER] | None = None
    """Number of the tenant's release to run it with; 0 is the platform's own texts, and nothing the texts it had."""


class ReplaySide(Message):
    """One run in figures."""

    release: str = ""
    """The release of the instructions that it ran with."""
    tool_calls: tuple[str, ...] = ()
    """Name and arguments of each call of a tool."""
    gaps: tuple[str, ...] = ()
    """The gaps that it found, a line each."""
    model_calls: int = 0
    """Calls of models."""
    input_tokens: int = 0
    """Tokens that the models read."""
    output_tokens: int = 0
    """Tokens that the models wrote."""
    cost_usd: float | None = None
    """What its model calls cost in US dollars; absent where a price is not known."""
    confidence: float | None = None
    """How sure an analyst's answer is, 0 to 1; absent for other agents."""


class Replayed(Message):
    """A replay beside the turn it repeats. It is no part of the conversation, and neither run has changed anything."""

    turn_id: str
    """Id of the replay: its model calls stand in the ledger under it."""
    replay_of: str
    """The turn that was run again."""
    same: bool
    """Whether both gave the same answer by the same calls."""
    answer: str = ""
    """The answer of the replay; empty where it ended with a problem."""
    problem: str | None = None
    """Code of the error that the replay ended with."""
    diff: str = ""
    """The difference of the two answers in the unified form; empty where they are equal."""
    before: ReplaySide
    """The recorded run in figures."""
    after: ReplaySide
    """The replay in figures."""
    unrecorded: tuple[ToolCalled, ...] = ()
    """Calls that are not in the record: they were answered `not_recorded`."""
    forgotten: tuple[str, ...] = ()
    """Ids of memories that the turn had and that have been forgotten since."""
    changed: tuple[str, ...] = ()
    """What else its owner no longer has as it was: `profile`, `summary`, a medium, or ids of memories not found again."""
    trace: AnswerTrace
    """The whole trace of the replay."""


TURN_TRACE = Rpc("orchestrator.v1.turn.trace", TraceOfTurn, AnswerTrace)
TURN_TRACE_TOOL = Tool(
    "turn.trace",
    "The whole trace of a turn's answer: instructions, stages, memories, facts, gaps, tool calls, model calls with tokens and"
    " cost. For the turn's user, and for admins.",
    TURN_TRACE,
)
TURN_REPLAY = Rpc("orchestrator.v1.turn.replay", ReplayTurn, Replayed, timeout=75.0)
TURN_REPLAY_TOOL = Tool(
    "turn.replay",
    "Run one of the caller's ended turns again on its recorded tool results, with the same or another release of the"
    " instructions, and show the difference. It writes nothing and calls no tool; its model calls are paid for.",
    TURN_REPLAY,
)
