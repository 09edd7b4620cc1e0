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
    title: str = Field(min_length=1, max_length=200)
    config: dict[str, Any] = Field(default_factory=dict)
    data: list[dict[str, Any]] | str
    """Rows; for `html` one sanitised fragment."""


class MemoryProcess(Message):
    """What was understood, and how the answer came about."""

    intent: str = Field(min_length=1)
    thought_trace: str = Field(min_length=1)


class AnswerData(Message):
    """The rows that the answer rests on, and figures over them."""

    query_results: tuple[dict[str, Any], ...] = ()
    summary_stats: dict[str, Any] = Field(default_factory=dict)


class Analysis(Message):
    """A whole answer, in every mode."""

    mode: Mode
    memory_process: MemoryProcess
    answer: str = Field(min_length=1)
    """Markdown, or HTML that was sanitised."""
    analysis: tuple[str, ...] = ()
    data: AnswerData = AnswerData()
    visualizations: tuple[Visualization, ...] = ()
    cypher_executed: str | None = None
    """What was read from the graph, joined with `;`; absent where nothing was."""
    confidence: float = Field(ge=0.0, le=1.0)


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
    ms: int
    outcome: str
    """`ok`, or the code of the error that ended it."""


class UsedMemory(Message):
    """A memory that the answer could rest on. Its text is with its owner."""

    id: str
    """Its id; of a scoped memory its scope and key."""
    kind: str
    score: float | None = None
    forgotten: bool = False
    """Whether it has been forgotten since."""


class UsedFact(Message):
    """A node that was read."""

    id: str
    type: str = ""


class FoundGap(Message):
    """A gap that was found around what was read."""

    type: str
    node: str
    missing: str = ""


class ToolCalled(Message):
    """One question to a tool's owner."""

    step: str = ""
    """The journalled step; empty for a read that is not journalled."""
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """With secrets masked and long texts cut."""
    outcome: str
    """`ok`, or the code of the error."""
    ms: int


class ModelCalled(Message):
    """One call to a model."""

    step: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None = None
    """In US dollars; absent where the price is not known."""
    ms: int
    attempts: int
    outcome: str
    """`ok`, `fault` for an answer that broke its schema, or the code of the error."""


class AnswerTrace(Message):
    """The whole trace of an answer, as it was committed: ids and figures, no text of a memory."""

    turn_id: str
    agent: str
    reasoner: str = ""
    version: str = ""
    """Of the agent's profile."""
    release: str = ""
    """The release of the instructions."""
    arms: dict[str, str] = Field(default_factory=dict)
    """The arm of each running experiment that the user was in."""
    mode: str | None = None
    tone: str | None = None
    tier: str | None = None
    intent: str | None = None
    decision: str | None = None
    planning: str | None = None
    """What became of a plan that a model was asked for: `accepted`, `repaired`, `rejected`, `failed` or `none`."""
    prose: str | None = None
    """The same of the reply that it wrote."""
    """Of a router."""
    plan: tuple[str, ...] = ()
    stages: tuple[StageRun, ...] = ()
    memories: tuple[UsedMemory, ...] = ()
    facts: tuple[UsedFact, ...] = ()
    gaps: tuple[FoundGap, ...] = ()
    tool_calls: tuple[ToolCalled, ...] = ()
    model_calls: tuple[ModelCalled, ...] = ()
    degraded: tuple[str, ...] = ()
    confidence: float | None = None
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
    tool_calls: tuple[str, ...] = ()
    """Name and arguments of each."""
    gaps: tuple[str, ...] = ()
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    confidence: float | None = None


class Replayed(Message):
    """A replay beside the turn it repeats. It is no part of the conversation, and neither run has changed anything."""

    turn_id: str
    """Of the replay: its model calls stand in the ledger under it."""
    replay_of: str
    same: bool
    """Whether both gave the same answer by the same calls."""
    answer: str = ""
    problem: str | None = None
    """Code of the error that the replay ended with."""
    diff: str = ""
    """Of the two answers, in the unified form; empty where they are equal."""
    before: ReplaySide
    after: ReplaySide
    unrecorded: tuple[ToolCalled, ...] = ()
    """Calls that are not in the record: they were answered `not_recorded`."""
    forgotten: tuple[str, ...] = ()
    """Ids of memories that the turn had and that have been forgotten since."""
    changed: tuple[str, ...] = ()
    """What else its owner no longer has as it was: `profile`, `summary`, a medium, or ids of memories not found again."""
    trace: AnswerTrace


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
