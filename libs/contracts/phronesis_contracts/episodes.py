"""Contracts of what an agent lived through: episodes, outcomes of tools, strategies, and the tool that asks about them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from .messages import Message, Rpc
from .orchestrator import ToolOutcome, TurnStatus
from .origins import UNKNOWN, Kept, Label
from .tasks import VerifiedBy
from .tools import Tool


class RecallEpisodes(Message):
    """A question to the caller's past turns."""

    query: str = Field(min_length=1, max_length=4_000)
    limit: int = Field(default=5, ge=1, le=20)


class Episode(Message):
    """One turn as it was kept."""

    id: str
    turn_id: str
    conversation_id: str
    agent: str
    outcome: TurnStatus
    """`completed`, `failed` or `parked`."""
    code: str | None = None
    """Why it has no reply."""
    tier: str | None = None
    task: str | None = None
    text: str
    """What was said on both sides, cut: a line for each, and one with the names of what was attached."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""
    tools: tuple[ToolOutcome, ...] = ()
    """What came of its tool calls, in their order."""
    at: datetime
    score: float
    """0 to 1: how near it is to the question, by meaning and by words."""


class RecalledEpisodes(Message):
    """Episodes, best first."""

    episodes: tuple[Episode, ...] = ()
    degraded: tuple[str, ...] = ()
    """The parts of the search that failed: `vector`, `text`."""


class AskToolStatistics(Message):
    """How often the caller's tools worked."""

    tools: tuple[str, ...] = Field(default=(), max_length=50)
    """Only these; the most used ones when empty."""
    limit: int = Field(default=50, ge=1, le=200)


class ToolUse(Message):
    """How often one tool was called, and how often that worked."""

    name: str
    uses: int
    successes: int
    rate: float
    """`successes` over `uses`, 0 to 1; a tool without uses is not listed."""
    last_at: datetime


class ToolStatistics(Message):
    """Tools, the most used first."""

    tools: tuple[ToolUse, ...] = ()


class MemoryOperation(StrEnum):
    """What `memory_query` can look through."""

    EPISODES = "episodes"
    CONTEXT = "context"
    STYLE = "style"
    FAILURES = "failures"


class MemoryQuery(Message):
    """One question to the caller's memory."""

    model_config = ConfigDict(extra="forbid")

    operation: MemoryOperation
    """episodes: past turns and their outcomes; context: preferences, contacts and history; style: how the caller writes;
    failures: errors of tools."""
    query: str = Field(min_length=1, max_length=500, pattern=r"\S")
    """What is looked for, in plain words."""
    limit: int = Field(default=5, ge=1, le=20)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """Say what there is to ask, where the question or its operation is none."""
        if isinstance(given, dict):
            named = [str(operation) for operation in MemoryOperation]
            query = given.get("query")
            if given.get("operation") not in named or not isinstance(query, str) or not query.strip():
                raise ValueError(f"operation is one of {', '.join(named)}, and query says what is looked for")
        return given


class MemoryHit(Message):
    """One thing found."""

    id: str
    text: str
    when: datetime | None = None
    score: float
    """0 to 1; of failures, 1 where the question names the tool."""
    source: str
    """What it is: `episode`, `fact`, `note`, `concept`, `profile`, `style`, or the name of the tool that failed."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""


class MemoryFound(Message):
    """What a question found; nothing found is no error."""

    operation: MemoryOperation
    query: str
    results: tuple[MemoryHit, ...] = ()
    count: int = 0
    error: str | None = None
    """What part of the memory did not answer."""


RECALL_EPISODES = Rpc("memory.v1.episodes.recall", RecallEpisodes, RecalledEpisodes)
TOOL_STATISTICS = Rpc("memory.v1.tools.statistics", AskToolStatistics, ToolStatistics)
MEMORY_QUERY = Rpc("memory.v1.query", MemoryQuery, MemoryFound)

MEMORY_QUERY_TOOL = Tool(
    "memory_query",
    "Look something up in the caller's memory while working: episodes (past turns and what came of them), context (preferences,"
    " contacts, history), style (how the caller writes) or failures (errors of tools). Reads only.",
    MEMORY_QUERY,
)

MIN_SCORE = 0.75
"""The score of a critic from which on a task's approach is kept."""
MAX_GOAL = 2_000
MAX_APPROACH = 4_000
"""Characters of an approach, and of what to avoid."""


class RecordStrategy(Kept):
    """How a background task was done, to be kept for the caller if somebody verified that it went well."""

    task_id: str = Field(min_length=1, max_length=100)
    """The task; a strategy is kept once for each."""
    goal: str = Field(min_length=1, max_length=MAX_GOAL)
    approach: str = Field(min_length=1, max_length=MAX_APPROACH)
    tools_used: tuple[str, ...] = Field(default=(), max_length=50)
    """In the order in which they were used."""
    score: float | None = None
    """The critic's, 0 to 1; without one the task counts as not successful."""
    succeeded: bool
    """Whether the task ended well; a failed one is no advice."""
    avoid: str = Field(default="", max_length=MAX_APPROACH)
    """What failed on the way and was recovered from."""
    conversation_id: str | None = Field(default=None, max_length=64)
    """The conversation that it was learnt from; the strategy goes with it."""
    verified_by: VerifiedBy | None = None
    """Who accepted the task's result; what nobody has verified is not kept."""
    agent: str = Field(default="", max_length=64)
    """The agent that did it: the strategy is recalled for no other."""
    kind: str = Field(default="", max_length=100)
    """What sort of goal it is, where that is known."""
    ontology: str = Field(default="", max_length=200)
    """The version of the tenant's ontology then, where it was at hand."""


class Recording(StrEnum):
    """What became of a strategy that was to be recorded."""

    RECORDED = "recorded"
    KNOWN = "known"
    """This task's was there already."""
    REFUSED = "refused"


class StrategyRecorded(Message):
    """What became of it, and why."""

    status: Recording
    id: str | None = None
    reason: str = ""
    """Why it was refused."""


MAX_TOOLS = 500
"""Tools that a recall of strategies names at most."""


class RecallStrategies(Message):
    """A goal, for which strategies of the caller are looked for."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL)
    n: int = Field(default=2, ge=1, le=10)
    agent: str = Field(default="", max_length=64)
    """The agent that will use them; strategies of another agent are not found. Empty: of any."""
    tools: tuple[str, ...] | None = Field(default=None, max_length=MAX_TOOLS)
    """The tools at hand: what needs another one is not found. Absent: whatever it needs."""
    kind: str = Field(default="", max_length=100)
    """What sort of goal it is; strategies of another sort are not found. Empty: of any."""


class Strategy(Message):
    """One strategy as it is recalled: verified, and not retired."""

    id: str
    goal: str
    approach: str
    avoid: str = ""
    tools_used: tuple[str, ...] = ()
    score: float
    """The critic's."""
    similarity: float
    """Cosine of its goal to the one that was asked for."""
    uses: int
    """How often it was used since in a task whose outcome was verified."""
    wins: int
    """How often that went well."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""
    created_at: datetime
    agent: str = ""
    """The agent that it is recalled for; empty for any."""
    kind: str = ""
    """What sort of goal it is for."""


class RecalledStrategies(Message):
    """Strategies, best first: by similarity and by how well they have worked since."""

    strategies: tuple[Strategy, ...] = ()
    degraded: tuple[str, ...] = ()
    """What could not be searched: `vector`, `memory`."""


class StrategyOutcome(Message):
    """What the version before says of a task that strategies were used for; nobody verified it, and it changes nothing."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=10)
    worked: bool


class VerifyStrategies(Message):
    """What a checker or a person says of a task; a later word about the same task takes the place of an earlier one."""

    task_id: str = Field(min_length=1, max_length=100)
    """The task; the strategy that was learnt from it is told, too."""
    ids: tuple[str, ...] = Field(default=(), max_length=10)
    """The strategies that it used."""
    accepted: bool
    """Whether its result was accepted."""
    by: VerifiedBy
    """Who says so."""


class StrategyStanding(Message):
    """How a strategy stands."""

    id: str
    uses: int
    wins: int
    retired: bool
    """It has stopped working and is recalled no more."""


class StrategyStandings(Message):
    """Those of the strategies that are the caller's."""

    strategies: tuple[StrategyStanding, ...] = ()


class StrategyState(StrEnum):
    """Where a strategy stands."""

    ACTIVE = "active"
    """Somebody verified that it worked: it is recalled."""
    UNVERIFIED = "unverified"
    """No accepted result speaks for it: it is not recalled."""
    RETIRED = "retired"
    """Its user retired it, or it has stopped working: it is not recalled."""


class StrategyEvidence(Message):
    """One task that speaks for a strategy or against it."""

    task_id: str
    """The task that it was learnt from, or that used it."""
    accepted: bool
    """Whether the result was accepted."""
    by: VerifiedBy
    """Who said so."""
    at: datetime
    """When it was said."""
    edited_since: bool = False
    """Whether the strategy's text was edited after that: the task was done with an earlier one."""


class KeptStrategy(Message):
    """One strategy as its user sees it."""

    id: str
    """Its id."""
    task_id: str
    """The task that it was learnt from."""
    state: StrategyState
    """Whether it is recalled."""
    goal: str
    """The goal that it was learnt from; it is found for goals like this one."""
    approach: str
    """How it was done."""
    avoid: str = ""
    """What failed on the way."""
    tools_used: tuple[str, ...] = ()
    """The tools that it needs, in the order of their use."""
    agent: str = ""
    """The agent that it is recalled for; empty for any."""
    kind: str = ""
    """What sort of goal it is for, where that is known."""
    ontology: str = ""
    """The version of the tenant's ontology that it was learnt with, where it was at hand."""
    score: float
    """The critic's, 0 to 1."""
    accepted: int = 0
    """Verified tasks that speak for it, its own among them."""
    rejected: int = 0
    """Verified tasks that speak against it."""
    last_at: datetime | None = None
    """When the last of them was verified."""
    evidence: tuple[StrategyEvidence, ...] = ()
    """The newest 100 of them; not in lists."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""
    created_at: datetime
    """When it was learnt."""
    edited_at: datetime | None = None
    """When its user last changed its text."""


class ListStrategies(Message):
    """The caller's strategies, newest first."""

    state: StrategyState | None = None
    """Only those that stand so."""
    limit: int = Field(default=50, ge=1, le=200)


class KeptStrategies(Message):
    """Strategies, the newest first, without their evidence."""

    strategies: tuple[KeptStrategy, ...] = ()
    """The strategies."""


class StrategyRef(Message):
    """One strategy of the caller by id."""

    strategy_id: str


class StrategyEdit(Message):
    """What the user changes of a strategy; what is not given stays."""

    goal: str | None = Field(default=None, min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """The goal that it is found by, up to 2,000 characters."""
    approach: str | None = Field(default=None, min_length=1, max_length=MAX_APPROACH, pattern=r"\S")
    """How it is done, up to 4,000 characters."""
    avoid: str | None = Field(default=None, max_length=MAX_APPROACH)
    """What to avoid, up to 4,000 characters; empty for nothing."""
    retired: bool | None = None
    """Retire it, or take that back."""

    @property
    def changes_text(self) -> bool:
        """Whether any of its text changes."""
        return (self.goal, self.approach, self.avoid) != (None, None, None)

    @model_validator(mode="after")
    def _changes_something(self) -> StrategyEdit:
        if not self.changes_text and self.retired is None:
            raise ValueError("say what is to change: goal, approach, avoid or retired")
        return self


class UpdateStrategy(StrategyEdit):
    """A change of one of the caller's strategies."""

    strategy_id: str


LIST_STRATEGIES = Rpc("memory.v1.strategies.list", ListStrategies, KeptStrategies)
GET_STRATEGY = Rpc("memory.v1.strategies.get", StrategyRef, KeptStrategy)
UPDATE_STRATEGY = Rpc("memory.v1.strategies.update", UpdateStrategy, KeptStrategy, timeout=10.0)
RETIRE_STRATEGY = Rpc("memory.v1.strategies.retire", StrategyRef, KeptStrategy)
RECORD_STRATEGY = Rpc("memory.v1.strategies.record", RecordStrategy, StrategyRecorded, timeout=10.0)
RECALL_STRATEGIES = Rpc("memory.v1.strategies.recall", RecallStrategies, RecalledStrategies)
STRATEGY_OUTCOME = Rpc("memory.v1.strategies.outcome", StrategyOutcome, StrategyStandings)
VERIFY_STRATEGIES = Rpc("memory.v1.strategies.verify", VerifyStrategies, StrategyStandings)
