"""What a background task needs from outside: tools, somebody who plans, and where its state and what it learnt are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import Field, field_validator

from phronesis_contracts import Message, Principal
from phronesis_contracts.answers import Visualization
from phronesis_contracts.tasks import TaskState

from ..models.reasoner import Answer, TurnContext
from ..turns.turn import Claim
from .plan import Plan, Step


@dataclass(frozen=True)
class ToolResult:
    """What a call of a tool gave. What went wrong with it is its outcome too."""

    ok: bool
    text: str = ""
    """What it gave, in the form that models are told."""
    answer: dict[str, Any] | None = None
    """What it gave, as JSON; absent where it failed."""
    code: str | None = None
    """Why it failed."""
    tools: tuple[str, ...] = ()
    """The tools that were called, in their order."""


class Caller(Protocol):
    """Calls tools for a task: behind the policy, journalled."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools at hand."""

    async def call(self, step: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Make one call, or read what it gave. A failure is an outcome.

        Args:
            step: name of the journalled step, unique in the turn.
            name: the tool's.
            arguments: as the plan has them.
        """


@dataclass(frozen=True)
class StepResult:
    step: Step
    outcome: ToolResult
    ms: int = 0


@dataclass(frozen=True)
class Strategy:
    """How a task that went well was done."""

    id: str
    goal: str
    approach: str
    tools_used: tuple[str, ...] = ()
    avoid: str = ""


@dataclass(frozen=True)
class GoalKnowledge:
    """What a decomposition is made with."""

    goal: str
    tools: tuple[str, ...]
    strategies: tuple[Strategy, ...] = ()
    offered: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    """Name, description and arguments' schema of each tool, for who has to be told."""
    template: Plan | None = None
    """A decomposition that worked for a goal like this."""
    ahead: str = ""
    """What was thought before the work began."""
    worked: tuple[StepResult, ...] = ()
    """For a new plan: what has worked."""
    failed: tuple[StepResult, ...] = ()
    """For a new plan: what has failed."""
    remaining: tuple[Step, ...] = ()
    """For a new plan: what was still to be done."""


class Verdict(Message):
    """Whether the remaining steps still make sense."""

    revise: bool
    reason: str = Field(default="", max_length=2_000)


class Criticism(Message):
    """What a critic says of a finished task."""

    score: float | None = None
    """0 to 1; what is no such number is none."""
    reason: str = Field(default="", max_length=2_000)

    @field_validator("score", mode="before")
    @classmethod
    def _in_range(cls, given: object) -> object:
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
            return None
        return given


class WrittenReport(Message):
    """A report."""

    title: str = Field(min_length=1, max_length=300)
    text: str = Field(min_length=1)
    charts: tuple[Visualization, ...] = ()
    used: tuple[str, ...] = ()
    """Ids of the steps that it rests on."""


@runtime_checkable
class Planner(Protocol):
    """A reasoner that can plan tasks, too. One that cannot leaves them to rules. Each call may raise `CallFailed`."""

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        """Make a plan for a goal, or a new one for what is left of it."""

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        """Say whether what is left still makes sense; by the fast model."""

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        """Say how well the goal was met, 0 to 1."""

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        """Write the report."""


class Strategies(Protocol):
    """Approaches that worked, kept by the memory."""

    async def recall(self, who: Principal, goal: str, n: int) -> tuple[Strategy, ...]:
        """Those for goals like this one, best first. Never raises: without memory there are none."""

    async def record(self, claim: Claim, goal: str, strategy: Strategy, score: float | None, *, succeeded: bool) -> None:
        """Keep how a task was done. Never raises."""

    async def outcome(self, claim: Claim, ids: tuple[str, ...], *, worked: bool) -> None:
        """Say what came of using strategies. Never raises."""


class Templates(Protocol):
    """Decompositions that worked, apart from strategies."""

    async def template(self, who: Principal, signature: str) -> Plan | None:
        """The plan that worked for goals of this signature."""

    async def keep_template(self, claim: Claim, signature: str, plan: Plan) -> None:
        """Keep a plan; the same signature again makes its next version. Raises `LostClaim`."""


class TaskStates(Protocol):
    """What is seen of tasks, and what their journals hold."""

    async def keep_state(self, claim: Claim, state: TaskState) -> None:
        """Write down how far a task is. Raises `LostClaim`."""

    async def journalled(self, claim: Claim) -> frozenset[str]:
        """Names of the steps that have a result."""


class TaskStore(Templates, TaskStates, Protocol):
    """Both."""
