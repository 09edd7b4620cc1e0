"""The language of plans, and what a background task needs from outside: tools, a planner, and places for its state."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, Protocol, Self, runtime_checkable

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import ConfigDict, Field, field_validator, model_validator

from phronesis_contracts import UNKNOWN, Label, Message, Principal
from phronesis_contracts.answers import Visualization
from phronesis_contracts.tasks import MAX_BLOCKS, FigureRow, ReportBlock, SourceRow, TableBlock, TaskState

from ..models.reasoner import Answer, TurnContext
from ..turns.turn import Claim

MAX_STEPS = 60
"""Steps of one plan."""
MAX_WAVES = 20
MAX_OF_WAVE = 16
"""Steps that are made side by side."""
MAX_PATH = 500
"""Characters of a path into a result."""
MAX_QUESTION = 4_000
MAX_ITEMS = 100
"""Items that one step goes through at most."""


class BadPlan(ValueError):
    """A plan that is not worked off; the text says why, and names the step and the field."""


class Each(Message):
    """The list that a step goes through: it is made once for each item."""

    of: str = Field(min_length=1, max_length=64)
    """The step whose result holds the list."""
    path: str = Field(default="@", min_length=1, max_length=MAX_PATH)
    """JMESPath of the list in that result."""
    limit: int = Field(default=25, ge=1, le=MAX_ITEMS)
    """With more items the step fails before any call is made."""


class When(Message):
    """What has to hold for a step to be made."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    of: str = Field(min_length=1, max_length=64)
    """The step whose result is looked at."""
    path: str = Field(default="@", min_length=1, max_length=MAX_PATH)
    """JMESPath of the value in that result."""
    test: Literal["empty", "not_empty", "equals", "more_than"] = Field(alias="is")
    """A value is empty where it is null, or a text, list or object without anything in it."""
    value: Any = None
    """What it has to equal, or the number that it has to be more than."""


class Step(Message):
    """One step of a plan."""

    id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = Field(min_length=1, max_length=1_000)
    tool: str | None = None
    """The tool that it calls; a step with neither tool nor question is worked on by a model, with all the tools at hand."""
    question: str | None = Field(default=None, min_length=1, max_length=MAX_QUESTION)
    """What is asked in place of a call, as a person would ask it. Its result is a `QuestionAnswer`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Of the tool. `{"$of": id, "path": JMESPath}` stands for what an earlier step gave, `{"$item": JMESPath}` for a part of
    the item at hand; both may also stand inside a text, and in the question."""
    each: Each | None = None
    """Makes the step once for each item of a list. Its result is then `{"items": [...]}`."""
    when: When | None = None
    """Leaves the step out where it does not hold."""
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


class NoValue(Exception):
    """A path gave nothing, or nothing that can stand where it is wanted; the text says which."""


@dataclass(frozen=True)
class Placeholder:
    """What stands for a value that is known when the step is made."""

    path: str
    of: str | None = None
    """The step whose result it is taken from; `None` for the item at hand."""


_OF, _ITEM = "$of", "$item"
_IN_TEXT = re.compile(r'\{\s*"\$(?:of|item)"')
Where = tuple[str | int, ...]
"""The place of a value: names of members and numbers of items."""


def find_placeholders(value: Any, where: Where = ()) -> Iterator[tuple[Where, Placeholder, bool]]:
    """The placeholders in arguments or in a question: where each is, and whether it stands inside a text.

    Raises:
        BadPlan: one is not written as it has to be.
    """
    match value:
        case str():
            for part in _split_text(value):
                if isinstance(part, Placeholder):
                    yield where, part, True
        case Mapping():
            if (found := _placeholder(value)) is not None:
                yield where, found, False
            else:
                for name, member in value.items():
                    yield from find_placeholders(member, (*where, str(name)))
        case list() | tuple():
            for at, member in enumerate(value):
                yield from find_placeholders(member, (*where, at))


def fill_placeholders(value: Any, results: Mapping[str, Any], item: Any = None) -> Any:
    """A value with every placeholder replaced. What a result holds is never looked through for placeholders.

    Args:
        results: what the steps gave, by their ids.
        item: what `$item` is a part of.

    Raises:
        NoValue: a placeholder gives nothing.
    """
    match value:
        case str():
            return "".join(part if isinstance(part, str) else _as_text(part, results, item) for part in _split_text(value))
        case Mapping():
            if (found := _placeholder(value)) is not None:
                return _value(found, results, item)
            return {name: fill_placeholders(member, results, item) for name, member in value.items()}
        case list() | tuple():
            return [fill_placeholders(member, results, item) for member in value]
        case _:
            return value


def look_up(path: str, value: Any) -> Any:
    """What a path gives; `None` where it gives nothing. Raises `NoValue`: it cannot be followed in this value."""
    try:
        return jmespath.search(path, value)
    except (JMESPathError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise NoValue(f"the path {path!r} cannot be followed: {error}"[:300]) from error


def is_empty(value: Any) -> bool:
    """Whether there is nothing in a value. The number 0 and `false` are something."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def holds(when: When, results: Mapping[str, Any]) -> bool:
    """Whether a condition holds. Raises `NoValue`: its path cannot be followed."""
    found = look_up(when.path, results.get(when.of))
    match when.test:
        case "empty":
            return is_empty(found)
        case "not_empty":
            return not is_empty(found)
        case "equals":
            return _same(found, when.value)
        case "more_than":
            return _is_number(found) and _is_number(when.value) and bool(found > when.value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _placeholder(value: Mapping[Any, Any]) -> Placeholder | None:
    if _OF not in value and _ITEM not in value:
        return None
    given = dict(value)
    of, path = (given.pop(_OF), given.pop("path", "@")) if _OF in given else (None, given.pop(_ITEM))
    named = of is None if _OF not in value else isinstance(of, str)
    if given or not named or not isinstance(path, str) or not 0 < len(path) <= MAX_PATH:
        raise BadPlan(
            f'{json.dumps(value, default=str)[:100]} is no placeholder: {{"$of": step, "path": path}} or {{"$item": path}}'
        )
    return Placeholder(path, of)


def _split_text(text: str) -> Iterator[str | Placeholder]:
    """The pieces of a text, with the placeholders in it."""
    at = 0
    while (found := _IN_TEXT.search(text, at)) is not None:
        try:
            given, end = json.JSONDecoder().raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            raise BadPlan(f"a placeholder in a text cannot be read: {text[found.start() :][:100]}") from error
        stated = _placeholder(given)
        assert stated is not None, "it begins as one"
        yield text[at : found.start()]
        yield stated
        at = end
    yield text[at:]


def _value(wanted: Placeholder, results: Mapping[str, Any], item: Any) -> Any:
    found = look_up(wanted.path, item if wanted.of is None else results.get(wanted.of))
    if found is None:
        source = "the item" if wanted.of is None else wanted.of
        raise NoValue(f"{source} has nothing at {wanted.path!r}")
    return found


def _as_text(wanted: Placeholder, results: Mapping[str, Any], item: Any) -> str:
    found = _value(wanted, results, item)
    parts = found if isinstance(found, list) else [found]
    if any(isinstance(part, dict | list) or part is None for part in parts):
        raise NoValue(f"what is at {wanted.path!r} cannot stand in a text")
    return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def drawn_from(step: Step) -> tuple[str, ...]:
    """The steps whose results a step cannot be made without. Raises `BadPlan`: a placeholder is not written as it has to be."""
    looked_at = [one.of for one in (step.each, step.when) if one is not None]
    stated = (one.of for value in (step.arguments, step.question) for _, one, _ in find_placeholders(value))
    return tuple(dict.fromkeys([*looked_at, *(of for of in stated if of is not None)]))


def check_plan(plan: Plan, tools: Collection[str], done: Sequence[Step] = (), *, works: bool = True) -> Plan:
    """A plan that can be worked off, its waves counted from 1 without holes; each step also depends on what it draws from.

    Args:
        done: finished steps that its own may depend on.
        works: whether a step with neither tool nor question can be made.

    Raises:
        BadPlan: it is empty, too large, cyclic, names an unknown tool or step, or a step stands before what it needs.
    """
    if not plan.steps:
        raise BadPlan("it has no steps")
    if len(plan.steps) > MAX_STEPS:
        raise BadPlan(f"it has more than {MAX_STEPS} steps")
    steps = tuple(_with_needs(step) for step in plan.steps)
    waves = {step.id: step.wave for step in steps}
    finished = {step.id for step in done}
    if len(waves) < len(steps) or set(waves) & finished:
        raise BadPlan("two of its steps have one id")
    _acyclic(steps)
    for step in steps:
        _check_step(step, tools, waves, finished, works)
    counted = _renumber_waves(steps)
    if max(step.wave for step in counted) > MAX_WAVES:
        raise BadPlan(f"it has more than {MAX_WAVES} waves")
    return plan.model_copy(update={"steps": counted})


def _with_needs(step: Step) -> Step:
    try:
        needs = tuple(dict.fromkeys((*step.depends, *drawn_from(step))))
    except BadPlan as error:
        raise BadPlan(f"{step.id}: {error}") from error
    return step if needs == step.depends else step.model_copy(update={"depends": needs})


def _acyclic(steps: Iterable[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.depends for step in steps}).prepare()
    except CycleError as error:
        raise BadPlan("its steps wait for each other") from error


def _check_step(step: Step, tools: Collection[str], waves: dict[str, int], done: Collection[str], works: bool) -> None:
    if step.tool is not None and step.question is not None:
        raise BadPlan(f"{step.id} has both a tool and a question")
    if step.tool is None and step.question is None and not works:
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
    return tail.model_copy(update={"steps": tuple(_renamed(step, names) for step in tail.steps)})


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    def of(one: Each | When | None) -> Any:
        return one.model_copy(update={"of": names.get(one.of, one.of)}) if one is not None else None

    renamed: dict[str, Any] = {
        "id": names[step.id],
        "depends": tuple(names.get(needed, needed) for needed in step.depends),
        "each": of(step.each),
        "when": of(step.when),
        "arguments": _with_names(step.arguments, names),
        "question": _with_names(step.question, names),
    }
    return step.model_copy(update=renamed)


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    """A value whose placeholders name steps as they are called now."""
    match value:
        case str():
            return "".join(one if isinstance(one, str) else json.dumps(_stated(one, names)) for one in _split_text(value))
        case Mapping():
            if (found := _placeholder(value)) is not None:
                return _stated(found, names)
            return {name: _with_names(member, names) for name, member in value.items()}
        case list() | tuple():
            return [_with_names(member, names) for member in value]
        case _:
            return value


def _stated(one: Placeholder, names: Mapping[str, str]) -> dict[str, str]:
    return {_ITEM: one.path} if one.of is None else {_OF: names.get(one.of, one.of), "path": one.path}


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


class FoundThing(Message):
    """One thing that an answer is about, with what was read of it."""

    model_config = ConfigDict(extra="allow")

    id: str
    type: str = ""
    """Its type in the ontology or the constitution."""
    title: str = ""


class QuestionAnswer(Message):
    """The answer to the question of a step."""

    text: str
    """The answer in words, as a person would be told it: Markdown."""
    read: Literal["twin", "constitution", "passages"]
    """Where it was read: by a plan over the twin or the constitution, or quoted from documents, memory or texts."""
    empty: bool = False
    """Whether nothing fits the question, which was understood and read completely."""
    total: int | None = None
    """How many things fit, where they were counted; more than `items` holds where those were cut."""
    items: tuple[FoundThing, ...] = ()
    """The things that fit, as far as the question asks for things: what a later step goes through."""
    figures: tuple[FigureRow, ...] = ()
    tables: tuple[TableBlock, ...] = ()
    charts: tuple[Visualization, ...] = ()
    sources: tuple[SourceRow, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader has to know beside the answer, a sentence each."""
    unexplained: tuple[str, ...] = ()
    """Words of the question that nothing explains, and that the answer leaves out."""
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)


Ask = Callable[[str, str], Awaitable[ToolResult]]
"""Asks the question of a step. It takes the name of the journalled step, unique in the turn, and the question; the `answer` of
what it gives is a `QuestionAnswer`. A question that is not understood fails with the code `task.not_understood`."""


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
    left_out: tuple[StepResult, ...] = ()
    """Steps whose condition did not hold, or that draw from such a step: they are no failures."""
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
