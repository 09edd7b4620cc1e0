"""A plan, its steps and waves, and what a background task needs from outside: tools, a planner, and places for its state."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol, Self, runtime_checkable

from pydantic import Field, field_validator, model_validator

from phronesis_contracts import UNKNOWN, Label, Message, Principal
from phronesis_contracts.answers import Visualization
from phronesis_contracts.tasks import MAX_BLOCKS, ReportBlock, TaskState

from ..models.reasoner import Answer, TurnContext
from ..turns.turn import Claim

MAX_STEPS = 60
"""Steps of one plan."""
MAX_WAVES = 20
MAX_OF_WAVE = 16
"""Steps that are made side by side."""


class BadPlan(ValueError):
    """A plan that is not worked off; the text says why."""


class Step(Message):
    """One step of a plan."""

    id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = Field(min_length=1, max_length=1_000)
    tool: str | None = None
    """The tool that it calls; without one the step is worked on with all the tools at hand."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    depends: tuple[str, ...] = Field(default=(), max_length=MAX_STEPS)
    """Steps of earlier waves without which it is not made."""
    wave: int = Field(ge=1, le=1_000)
    optional: bool = False
    """Only looks around: it is left out where a strategy that worked did without its tool."""


class Plan(Message):
    """The steps to a goal."""

    title: str = Field(default="", max_length=300)
    """What the report will be called."""
    kind: str = Field(default="", max_length=100)
    """What sort of task it is, where the planner knows it."""
    steps: tuple[Step, ...]


def check_plan(plan: Plan, tools: Collection[str], done: Collection[str] = (), *, works: bool = True) -> Plan:
    """A plan that can be worked off, its waves counted from 1 without holes.

    Args:
        done: ids of finished steps that its own may depend on.
        works: whether a step without a tool can be made.

    Raises:
        BadPlan: it is empty, too large, cyclic, names an unknown tool or step, or a step stands before what it needs.
    """
    steps = plan.steps
    if not steps:
        raise BadPlan("it has no steps")
    if len(steps) > MAX_STEPS:
        raise BadPlan(f"it has more than {MAX_STEPS} steps")
    waves = {step.id: step.wave for step in steps}
    if len(waves) < len(steps) or set(waves) & set(done):
        raise BadPlan("two of its steps have one id")
    _acyclic(steps)
    for step in steps:
        _check_step(step, tools, waves, done, works)
    counted = _renumber_waves(steps)
    if max(step.wave for step in counted) > MAX_WAVES:
        raise BadPlan(f"it has more than {MAX_WAVES} waves")
    return plan.model_copy(update={"steps": counted})


def _acyclic(steps: Iterable[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.depends for step in steps}).prepare()
    except CycleError as error:
        raise BadPlan("its steps wait for each other") from error


def _check_step(step: Step, tools: Collection[str], waves: dict[str, int], done: Collection[str], works: bool) -> None:
    if step.tool is None and not works:
        raise BadPlan(f"{step.id} names no tool")
    if step.tool is not None and step.tool not in tools:
        raise BadPlan(f"{step.id} names an unknown tool")
    for needed in step.depends:
        if needed not in waves and needed not in done:
            raise BadPlan(f"{step.id} depends on a step that there is not")
        if needed in waves and waves[needed] >= step.wave:
            raise BadPlan(f"{step.id} stands no later than what it depends on")


def _renumber_waves(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps in the order of their waves, these counted from 1; a wave that is too wide goes on in the next one."""
    found: list[Step] = []
    wave = 0
    for number in sorted({step.wave for step in steps}):
        same = [step for step in steps if step.wave == number]
        for at in range(0, len(same), MAX_OF_WAVE):
            wave += 1
            found += [step.model_copy(update={"wave": wave}) for step in same[at : at + MAX_OF_WAVE]]
    return tuple(found)


Remaining = tuple[Step, ...]


def next_wave(remaining: Remaining) -> tuple[Remaining, Remaining]:
    """The steps of the lowest wave, and those that are left behind it."""
    first = min(step.wave for step in remaining)
    return tuple(step for step in remaining if step.wave == first), tuple(step for step in remaining if step.wave != first)


def missing_needs(step: Step, ended_well: Collection[str]) -> tuple[str, ...]:
    """What a step needs and did not get."""
    return tuple(needed for needed in step.depends if needed not in ended_well)


def rename_steps(tail: Plan, taken: Collection[str]) -> Plan:
    """A new tail whose steps have ids of their own, so that no journalled step is taken for another."""
    names = _names(tail, taken)
    steps = tuple(
        step.model_copy(update={"id": names[step.id], "depends": tuple(names.get(needed, needed) for needed in step.depends)})
        for step in tail.steps
    )
    return tail.model_copy(update={"steps": steps})


def _names(tail: Plan, taken: Collection[str]) -> Mapping[str, str]:
    used, names = set(taken), dict[str, str]()
    for step in tail.steps:
        name, nth = step.id, 1
        while name in used and step.id not in names:
            nth += 1
            name = f"{step.id[:60]}.{nth}"
        names[step.id] = name
        used.add(name)
    return names


_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
"""Numbers count however short they are: a plan for part 12 is none for part 15."""
_SMALL = frozenset(
    "a an and are by do for from how in is it of on or our please the their to up us was we what which with".split()
)


def goal_signature(goal: str, agent: str) -> str:
    """What goals have in common that one decomposition is good for: their words, without order, case and small words."""
    words = sorted({word for word in _WORD.findall(goal.casefold()) if word not in _SMALL})
    return hashlib.sha256("\x00".join((agent, *words)).encode()).hexdigest()


def usable_plan(plan: Plan | None, tools: tuple[str, ...]) -> Plan | None:
    """A kept plan whose tools are all at hand still."""
    if plan is None or any(step.tool is not None and step.tool not in tools for step in plan.steps):
        return None
    return plan


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

    async def call(self, step: str, name: str, arguments: dict[str, Any], *, ours: bool = False) -> ToolResult:
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
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


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
    text: str = ""
    """Markdown, from who gives no blocks; else it is rendered from them."""
    blocks: tuple[ReportBlock, ...] = Field(default=(), max_length=MAX_BLOCKS)
    charts: tuple[Visualization, ...] = ()
    used: tuple[str, ...] = ()
    """Ids of the steps that it rests on."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.text and not self.blocks:
            raise ValueError("a report has text or blocks")
        return self


_RAW = re.compile(r"""[{\[]\s*[{]?\s*["'][^"'\n]{1,100}["']\s*:""")
"""How an object begins that a program wrote: JSON, or a value of a language that writes alike."""


def holds_raw_data(text: str) -> bool:
    """Whether a text shows data as programs write it, in place of sentences or a table."""
    return _RAW.search(text) is not None


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

    async def record(
        self,
        claim: Claim,
        goal: str,
        strategy: Strategy,
        score: float | None,
        *,
        succeeded: bool,
        labels: tuple[Label, ...],
    ) -> None:
        """Keep how a task was done, and where what it read came from. Never raises."""

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
