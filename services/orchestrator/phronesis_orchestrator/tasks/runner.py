"""Running a background task: its waves, its steps, what is seen of it meanwhile, and its end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, cast

from pydantic import TypeAdapter
from pydantic_core import from_json, to_jsonable_python

from phronesis_contracts import (
    Forbidden,
    Internal,
    Label,
    NotFound,
    OriginKind,
    Principal,
    Risk,
    Rpc,
    ServiceError,
    Tool,
    Unavailable,
)
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, Media
from phronesis_contracts.memory import AugmentedMemoryContext, Profile
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import Problem, Source, TurnProgress
from phronesis_contracts.tasks import (
    MAX_COLUMNS,
    MAX_TABLE_ROWS,
    Cell,
    FigureRow,
    SourceRow,
    StepState,
    StrategiesArm,
    TableBlock,
    TaskState,
    TaskStep,
)

from ..agents.binding import Origins, labels_of
from ..agents.counsel.answers import Grid
from ..agents.counsel.questions import CounselAnswer, answer_in_full
from ..agents.counsel.tools import NotOffered, TurnTools
from ..agents.presentation import sanitize_answer, sanitize_text
from ..agents.tools import answers_like_dialogue, uses_allow_list
from ..approvals.policy import Paused
from ..models.prompts import new_mark
from ..models.reasoner import Answer, CallResult, Inquirer, Inquiry, Interpreter, Move, TurnContext, Value
from ..traces.record import find_tool
from ..turns.execution import Steps, TurnRun
from ..turns.ports import Neighbours
from ..turns.turn import Deferred, LostClaim, may_pass
from ..understanding.answering import RuleAnswer, answer_by_rules
from ..understanding.finding import Finding
from ..understanding.language import detect
from ..understanding.lexicon import Lexicon, VocabularyView
from ..understanding.plan import DATA_PLANS, Aggregate, Change, Compare, Filter, Focus, Rank, Select, Unknown
from ..understanding.reading import Item, read
from .decisions import SPENT, BudgetMeter, Replanner
from .ports import (
    Ask,
    AskedThing,
    Caller,
    FoundThing,
    GoalKnowledge,
    NoValue,
    Plan,
    Planner,
    QuestionAnswer,
    Remaining,
    Step,
    StepResult,
    TaskStates,
    ToolResult,
    drawn_from,
    fill_placeholders,
    find_placeholders,
    holds,
    look_up,
    missing_needs,
    next_wave,
)
from .report import block_text, describe_found, needed_lines


class ProgressBoard:
    """Shows how far one task is. `states`: where the state is kept."""

    def __init__(self, running: TurnRun, states: TaskStates) -> None:
        self._running = running
        self._states = states
        self._steps: dict[str, TaskStep] = {}
        self.state = TaskState()

    async def planned(self, plan: Plan, strategies: tuple[str, ...], arm: StrategiesArm) -> None:
        self._steps = {step.id: _planned_step(step) for step in plan.steps}
        await self.update(strategies=strategies, strategies_arm=arm)
        waves = self.state.waves
        await self._running.show("plan", waves=waves, steps=[f"{step.wave}. {step.description}" for step in plan.steps])

    async def adjusted(self, left: tuple[Step, ...]) -> None:
        """What is left to do was changed."""
        begun = {id: one for id, one in self._steps.items() if one.state is not StepState.PENDING}
        self._steps = begun | {step.id: _planned_step(step) for step in left}
        await self.update()
        await self._running.show("plan_adjusted", steps=[f"{step.wave}. {step.description}" for step in left])

    async def wave(self, number: int, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._steps[step.id] = _planned_step(step).model_copy(update={"state": StepState.RUNNING})
        await self.update()
        await self._running.show("wave_started", wave=number, steps=[step.id for step in steps])

    async def step(self, result: StepResult) -> None:
        ended = _ended_step(result)
        self._steps[result.step.id] = ended
        await self._running.show(
            "step_finished",
            step=ended.id,
            description=ended.description,
            state=ended.state.value,
            ms=ended.ms,
            code=ended.code,
            found=ended.found,
        )

    async def wave_ended(self, number: int) -> None:
        await self.update()
        await self._running.show("wave_finished", wave=number)

    async def left_out(self, steps: tuple[Step, ...], code: str) -> None:
        """Steps that are not made any more."""
        for step in steps:
            self._steps[step.id] = _planned_step(step).model_copy(update={"state": StepState.SKIPPED, "code": code})
        await self.update()

    async def update(self, **more: Any) -> None:
        """Keep the state, with what is new of it."""
        steps = tuple(self._steps.values())
        waves = max((step.wave for step in steps), default=0)
        self.state = self.state.model_copy(update={"steps": steps, "waves": waves, **more})
        await self._states.keep_state(self._running.claim, self.state)


def _planned_step(step: Step) -> TaskStep:
    return TaskStep(id=step.id, wave=step.wave, description=step.description, tool=step.tool, depends=step.depends)


def _ended_step(result: StepResult) -> TaskStep:
    outcome = result.outcome
    skipped = outcome.code in SKIPS
    state = StepState.DONE if outcome.ok else StepState.SKIPPED if skipped else StepState.FAILED
    found = describe_found(outcome)
    return _planned_step(result.step).model_copy(update={"state": state, "code": outcome.code, "ms": result.ms, "found": found})


def _no_wait(errors: Sequence[BaseException]) -> BaseException:
    return next(one for one in errors if not isinstance(one, Paused))


NEEDED = "task.needed_failed"
"""Code of a step that was not made since what it needs failed."""
CONDITION = "task.condition"
"""Code of a step that was not made since its condition does not hold, or that draws from such a step."""
NO_VALUE = "task.no_value"
"""Code of a step whose placeholders gave nothing, so that no call was made."""
TOO_MANY = "task.too_many_items"
"""Code of a step with more items than its limit, so that no call was made."""
CHANGED = "task.changed"
"""Code of a step that a second attempt found with other items than the first one began to go through."""
SKIPS = frozenset({NEEDED, CONDITION, SPENT})

MAX_ROUNDS = 6
"""Rounds of one step, the answer counted in."""
MAX_OF_ROUND = 4
"""Calls of one round that are made."""


async def work_on_step(
    steps: Steps,
    caller: Caller,
    meter: BudgetMeter,
    reasoner: Inquirer,
    context: TurnContext,
    step: Step,
    offered: tuple[Any, ...],
    found: str = "",
) -> ToolResult:
    """What a step gave. `found`: what the steps that it needs gave, for the model to read."""
    thought = replace(context.thought, plan=found)
    step_context = replace(context, user_text=step.description, final_input=step.description, thought=thought)
    inquiry = Inquiry("task", step.description, offered, new_mark(step_context))
    tools: list[str] = []
    for number in range(1, MAX_ROUNDS + 1):
        inquiry.closing = number == MAX_ROUNDS
        if limit := meter.model():
            return ToolResult(False, limit.detail, code=limit.code, tools=tuple(tools))
        name = f"task.step.{step.id}.round.{number}"
        try:
            move = (await steps.made(name, Move, lambda: reasoner.proceed(step_context, inquiry), label="task.round")).value
        except ServiceError as error:
            return ToolResult(False, error.detail, code=error.code, tools=tuple(tools))
        if move is None or not move.calls or inquiry.closing:
            text = move.text.strip() if move is not None else ""
            return ToolResult(bool(text), text, {"text": text}, None if text else "no_answer", tuple(tools))
        results = await _call_tools(caller, meter, step, number, move)
        tools += [call.name for call in move.calls[:MAX_OF_ROUND]]
        inquiry.rounds.append((move.model_copy(update={"calls": move.calls[:MAX_OF_ROUND]}), results))
    raise AssertionError("the last round closes")


async def _call_tools(caller: Caller, meter: BudgetMeter, step: Step, number: int, move: Move) -> tuple[CallResult, ...]:
    results = []
    for at, call in enumerate(move.calls[:MAX_OF_ROUND], 1):
        if limit := meter.call():
            results.append(CallResult(call, limit.detail, "note"))
            continue
        outcome = await caller.call(f"task.step.{step.id}.call.{number}.{at}", call.name, _arguments(call.arguments))
        results.append(CallResult(call, outcome.text, "rows" if outcome.ok else "note"))
    return tuple(results)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        return {"": text[:200]}
    return given if isinstance(given, dict) else {"": text[:200]}


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WavesResult:
    """What the waves of a task gave."""

    known: GoalKnowledge
    """With all results."""
    skipped: tuple[Step, ...]
    stopped: Problem | None
    """The limit that ended it before its plan did."""
    plan: Plan
    """The steps that were made."""


class ReadingNeighbours:
    """The other services for one question: it reads alone, and all that it reads is labelled.

    Args:
        neighbours: who is asked.
        origins: where it is noted what was read.
    """

    def __init__(self, neighbours: Neighbours, origins: Origins) -> None:
        self._neighbours, self._origins = neighbours, origins
        self.of_memory = False
        """Whether something was read that memory alone keeps the text of."""
        self.away: ServiceError | None = None
        """The last error of a service that may be back in a moment."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        return await self._neighbours.agent(who, name)

    async def profile(self, who: Principal) -> Profile:
        self.of_memory = True
        found = await self._neighbours.profile(who)
        self._origins.read(found.labels, found.profile)
        return found

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        self.of_memory = True
        return await self._neighbours.retrieve(who, phrases, budget, limit)

    async def media(self, who: Principal, media_id: str) -> Media:
        return await self._neighbours.media(who, media_id)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        return await self._neighbours.medium_text(who, medium, limit)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        tool = find_tool(rpc)
        if key is not None or (tool is not None and tool.risk > Risk.READ):
            raise Forbidden("the question of a step only reads")
        try:
            answer = await self._neighbours.ask(who, rpc, request)
        except ServiceError as error:
            self.away = error if may_pass(error) else self.away
            raise
        self.of_memory = self.of_memory or rpc.service == "memory"
        named = (Label(kind=OriginKind.TOOL, id=rpc.subject[:200]),)
        self._origins.read(labels_of(tool, answer) if tool is not None else named, answer)
        return answer


class _StepsOf(Steps):
    """The journal of one question: the names of what is made for it begin with that of its step."""

    def __init__(self, steps: Steps, name: str) -> None:
        self._steps, self._name = steps, name
        self.progressed = False

    async def called(
        self,
        name: str,
        tool: str,
        call: Callable[[], Awaitable[dict[str, Any]]],
        *,
        again: bool = True,
        changes: bool = False,
    ) -> dict[str, Any]:
        return await self._steps.called(f"{self._name}.{name}", tool, call, again=again, changes=changes)

    async def made(
        self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], *, label: str | None = None
    ) -> Answer[Value]:
        return await self._steps.made(f"{self._name}.{name}", model, call, label=label or name)


async def _hide(who: Principal, line: TurnProgress) -> None:
    """What is seen of a task are its steps, and not how each question is answered."""


NOT_UNDERSTOOD = "task.not_understood"
"""Code of a question with words that nothing explains, or that nothing on record answers."""
_LISTED = 500
"""Things of one answer that later steps can go through."""
_SURE = 0.3
"""How sure a quoted passage has to be to answer a question."""


class QuestionDesk:
    """Answers the questions of a task's steps by rules, as a person's: from the twin, the constitution, or passages.

    Args:
        turn: the task's own.
        model: who is asked for a plan where the rules have none; nobody is where it is `None`.
        tools: what the task reads with, by name.
    """

    def __init__(
        self, running: TurnRun, turn: TurnContext, model: Interpreter | None, tools: Mapping[str, Tool[Any, Any]]
    ) -> None:
        self._running, self._turn, self._model = running, turn, model
        self._tools = {name: tool for name, tool in tools.items() if tool.risk is Risk.READ}

    async def ask(self, step: str, question: str) -> ToolResult:
        """An `Ask`. The answer is journalled, unless memory alone keeps what it says: then it is looked up again."""
        fresh: ToolResult | None = None

        async def make() -> dict[str, Any]:
            nonlocal fresh
            fresh, held = await self._answered(step, question)
            return {"held": True} if held else {"result": to_jsonable_python(fresh)}

        given = await self._running.steps.called(step, "task.question", make)
        if fresh is not None:
            return fresh
        return (await self._answered(step, question))[0] if given.get("held") else _RESULT.validate_python(given["result"])

    async def _answered(self, step: str, question: str) -> tuple[ToolResult, bool]:
        """The answer, and whether memory alone keeps what it says."""
        neighbours = ReadingNeighbours(self._running.neighbours, self._running.origins)
        running = replace(
            self._running,
            neighbours=neighbours,
            steps=_StepsOf(self._running.steps, step),
            progress=_hide,
            degraded=[],
        )
        turn = self._asking(question)
        try:
            answer, words = await self._best(running, turn)
        except ServiceError as error:
            self._running.defer(error)
            return ToolResult(False, error.detail, code=error.code), neighbours.of_memory
        except (Deferred, LostClaim):
            raise
        except Exception as error:
            # One step may not end the task; what broke stands in the log.
            log.exception("the question of a step broke: %s", step)
            return ToolResult(False, type(error).__name__, code=Internal.code), neighbours.of_memory
        finally:
            for part in running.degraded:
                self._running.degrade(part)
        if neighbours.away is not None and (answer is None or answer.empty):
            self._running.defer(neighbours.away)
        if answer is None and running.degraded:
            away = ", ".join(running.degraded)
            return ToolResult(False, f"it could not be looked up without {away}", code=Unavailable.code), neighbours.of_memory
        if answer is None:
            said = ", ".join(f"“{word}”" for word in dict.fromkeys(words))
            why = f"nothing explains {said}" if said else "nothing on record answers it"
            return ToolResult(False, why, code=NOT_UNDERSTOOD), neighbours.of_memory
        return ToolResult(True, answer.text, answer.model_dump(mode="json")), neighbours.of_memory

    async def look(self, running: TurnRun, question: str) -> tuple[QuestionAnswer | None, Sequence[str]]:
        """The answer to a question as it is now, and the words that nothing explains: no step, and nothing is journalled.

        Args:
            running: the turn, with the neighbours that are to be asked.

        Raises:
            ServiceError: what it has to be read from is away.
        """
        return await self._best(replace(running, progress=_hide, degraded=[]), self._asking(question))

    def _asking(self, question: str) -> TurnContext:
        focus = Focus(language=self._turn.focus.language)
        return replace(self._turn, user_text=question, final_input=question, history=(), focus=focus)

    async def _best(self, running: TurnRun, turn: TurnContext) -> tuple[QuestionAnswer | None, Sequence[str]]:
        """The first answer that explains every word and finds something; then one that finds nothing; then what is quoted.

        Raises:
            ServiceError: nothing was found, and not all could be asked.
        """
        of_twin, of_counsel = self._of_twin, self._of_counsel
        first = turn.agent is not None and uses_allow_list(turn.agent) and not answers_like_dialogue(turn.agent)
        empty: QuestionAnswer | None = None
        told: QuestionAnswer | None = None
        words: list[str] = []
        away: ServiceError | None = None
        for ask in (of_counsel, of_twin) if first else (of_twin, of_counsel):
            try:
                answer, unexplained = await ask(running, turn)
            except ServiceError as error:
                away = error
                continue
            if answer is not None and not answer.empty:
                if not first or answer.total is not None or answer.read == "twin":
                    return answer, ()
                told = answer  # of one thing, which gives way to a set of the twin that each word of the question describes
                continue
            empty, words = empty or answer, [*words, *unexplained]
        if away is not None:
            raise away
        if told is not None:
            return told, ()
        if empty is not None:
            return empty, ()
        quoted = await answer_by_rules(running, turn)
        if quoted.sources and quoted.finding is None and quoted.sure >= _SURE:
            return _from_passages(quoted), ()
        return None, words

    async def _of_twin(self, running: TurnRun, turn: TurnContext) -> tuple[QuestionAnswer | None, Sequence[str]]:
        answer = await answer_by_rules(running, turn, quotes=False, model=self._model)
        plan, finding = answer.understood.plan, answer.finding
        if isinstance(plan, Unknown):
            return None, plan.words.split(", ") if plan.words else ()
        if not isinstance(plan, DATA_PLANS) or finding is None or finding.outcome not in ("found", "empty"):
            return None, ()
        if answer.understood.passed:
            return None, answer.understood.passed
        return await self._with_asked(_from_twin(answer, finding), turn.user_text, plan), ()

    async def _with_asked(self, answer: QuestionAnswer, text: str, plan: Any) -> QuestionAnswer:
        """An answer of the twin with what its question asks for and the plan to it leaves out."""
        assert self._running.vocabularies is not None, "it was answered from the twin"
        lexicon = await self._running.vocabularies.lexicon(self._running.claim.who, detect(text))
        if lexicon is None:
            return answer
        asked = {"left_out": find_left_out(text, lexicon, plan), "by_words": is_set_by_words(plan, lexicon.view)}
        return answer.model_copy(update=asked)

    async def _of_counsel(self, running: TurnRun, turn: TurnContext) -> tuple[QuestionAnswer | None, Sequence[str]]:
        if turn.agent is None:
            return None, ()
        desk = TurnTools(running, turn.agent)
        desk.tools = {name: tool for name, tool in {**desk.tools, **self._tools}.items() if tool.risk is Risk.READ}
        try:
            answer = await answer_in_full(running, turn, desk)
        except (NotOffered, NotFound):
            return None, ()
        if not answer.answers or (answer.found is None and answer.unknown):
            return None, answer.unexplained or answer.unknown  # what is told of one thing may be about another
        return _from_counsel(answer, desk), ()


_RESULT = TypeAdapter(ToolResult)


def _from_twin(answer: RuleAnswer, finding: Finding) -> QuestionAnswer:
    written, plan = answer.written, answer.understood.plan
    members = [row for row in finding.rows if isinstance(row.get("id"), str)]
    type = plan.of.type if isinstance(plan, Select | Rank | Change) else ""
    items = [
        FoundThing(**{**row, "id": row["id"], "type": str(row.get("type") or type), "title": str(row.get("name", ""))})
        for row in members
    ] or [FoundThing(id=one.id, type=one.type, title=one.name) for one in finding.entities]
    return QuestionAnswer(
        text=sanitize_answer(written.text),
        read="twin",
        empty=finding.outcome == "empty",
        total=finding.total or len(items),
        items=tuple(items[:_LISTED]),
        figures=_figures(written.rows) if len(written.rows) == 1 else (),
        tables=(_table(written.rows),) if len(written.rows) > 1 else (),
        charts=written.charts,
        sources=_source_rows(answer.sources),
        notes=(*(sanitize_text(text) for text in written.insights), *answer.understood.notes),
        confidence=max(0.0, min(1.0, answer.sure)),
    )


@dataclass(frozen=True)
class FigureSaid:
    """A figure that a question about the twin asks for."""

    words: str
    measure: Literal["count", "sum", "mean", "median"]
    property: str | None = None


_MEASURED = ("sum", "mean", "median")


def figures_said(text: str, lexicon: Lexicon, type: str) -> tuple[FigureSaid, ...]:
    """The figures that a question asks of things of a type, in the order of its words."""
    found: list[FigureSaid] = []
    pending, before = "", ""
    numbers = {one.name for one in lexicon.view.properties(type) if one.kind == "number"}
    for item in read(text, lexicon).items:
        own = [name for of, name in item.of("property") if of == type and name in numbers]
        measured = next((kind for kind in _MEASURED if item.has(kind)), "")
        if item.has("count") and not own:
            found.append(FigureSaid(item.text, "count"))
        elif measured and not own:
            pending = pending or f"{measured} {item.text}"
        elif own:
            kind, _, word = pending.partition(" ")
            if kind:
                found.append(FigureSaid(f"{word} {item.text}", cast("Any", kind), own[0]))
            pending, before = "", own[0] if not kind else before
    if pending and before:  # the costs that they add up to
        kind, _, word = pending.partition(" ")
        found.append(FigureSaid(f"{word} {before}", cast("Any", kind), before))
    return tuple({(one.measure, one.property): one for one in found}.values())


def find_left_out(text: str, lexicon: Lexicon, plan: Any, told: Sequence[FigureSaid] = ()) -> tuple[str, ...]:
    """Words of a question for properties, figures, groups and things that are in no part of the plan to it.

    Args:
        told: figures that are told beside those of the plan.
    """
    sides = plan.sides if isinstance(plan, Compare) else (plan,)
    sets = [side.of for side in sides if isinstance(side, Aggregate | Select | Rank | Change)]
    if not sets:
        return ()
    type, there = sets[0].type, {*_leaves(plan.model_dump(mode="json")), *(one.property for one in told)}
    lost: list[str] = []
    items = read(text, lexicon).items
    for item in items:
        own = [name for of, name in item.of("property") if of == type]
        if own and not there & set(own) and not item.has("value", "count", "list"):
            lost.append(item.text)
        names = {name for refs in item.of("entity") for ref in refs for name in (ref.id, ref.name)}
        if names and not there & names and not item.has("type", "value", "property"):
            lost.append(item.text)
    if isinstance(plan, Select) and (links := links_said(text, lexicon, plan)):
        lost += [item.text for item in items if any(item.names_type(one.to or "") for one in links) and not item.has("entity")]
    figures = [side for side in sides if isinstance(side, Aggregate)]
    for one in figures_said(text, lexicon, type):
        if one in told:
            continue
        whole = one.measure == "count" and not all(isinstance(side, Aggregate) for side in sides)
        listed = isinstance(plan, Select | Rank) and (one.property is None or one.property in there)
        if not (whole or listed or any((side.measure, side.property) == (one.measure, one.property) for side in figures)):
            lost.append(one.words)
    numbers = {one.name for one in lexicon.view.properties(type) if one.kind == "number"}
    for value, by, divisor in zip(items, items[1:], items[2:], strict=False):
        if by.has("group") and all(
            any(of == type and name in numbers for of, name in one.of("property")) for one in (value, divisor)
        ):
            lost.append(f"{value.text} {by.text} {divisor.text}")  # a ratio of two figures, which no plan has
    lost += [
        group.text
        for group in _groups_said(items, type)
        if not there & {name for name, _ in group.of("type")} | there & {name for _, name in group.of("property")}
    ]
    return tuple(dict.fromkeys(lost))


def is_set_by_words(plan: Any, view: VocabularyView) -> bool:
    """Whether a plan chooses things by what the ontology declares, by numbers and by dates alone.

    A name, or a value that is on record and not declared, is what somebody wrote: its author would choose by it what one of the
    user's adjectives means.
    """
    if not isinstance(plan, Select | Rank) or plan.of.among:
        return False

    def declared(one: Filter, type: str) -> bool:
        if one.op in ("linked", "unlinked"):
            return one.value is None and one.to is not None and all(declared(inner, one.to) for inner in one.where)
        owner = one.to if one.via is not None else type
        of = next((each for each in view.properties(owner or "") if each.name == one.property), None)
        if of is None:
            return False
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        return all(not isinstance(value, str) or of.kind == "date" or value in of.choices for value in values)

    return all(declared(one, plan.of.type) for one in plan.of.filters)


def links_said(text: str, lexicon: Lexicon, plan: Select) -> tuple[Filter, ...]:
    """What a list is to tell of each thing that it is joined to, which its plan takes for a condition: with cost and owner."""
    told = bool(plan.show) or any(item.has("pronoun_many", "pronoun_one") for item in read(text, lexicon).items)
    return tuple(one for one in plan.of.filters if told and one.op == "linked" and not one.where)


def _groups_said(items: Sequence[Item], type: str) -> list[Item]:
    """What stands behind the words for each and by, and is no number, year or thing of the type itself."""
    behind = [after for item, after in pairwise(items) if item.has("group") and not item.has("by_date", "each_year")]
    return [
        one for one in behind if one.has("type", "property") and not one.names_type(type) and not one.has("entity", "value")
    ]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _leaves(member)
    else:
        yield value


def _from_counsel(answer: CounselAnswer, desk: TurnTools) -> QuestionAnswer:
    cited = desk.record.sources(answer.text)
    plans = answer.plans
    if answer.found is None or plans is None:
        items = [FoundThing(id=one.id, type=one.type, title=one.title) for one in cited]
    else:
        items = [
            FoundThing(**{**one.fields, "id": one.id, "type": one.type, "title": one.title, "status": one.status, ASKED: of})
            for one in answer.found
            for of in (plans.told_of.get(one.id, {}),)
        ]
    return QuestionAnswer(
        text=sanitize_answer(answer.text),
        read="constitution",
        empty=answer.found is not None and not answer.found,
        total=len(answer.found) if answer.found is not None else None,
        items=tuple(items[:_LISTED]),
        figures=tuple(FigureRow(label=_begun(label)[:300], value=value) for label, value in plans.figures) if plans else (),
        tables=(_grid(plans.grid),) if plans is not None and plans.grid is not None else (),
        asked=tuple(AskedThing(words=one.words, labels=one.labels) for one in plans.demanded) if plans else (),
        lacking=plans.lacking if plans is not None else (),
        by_words=answer.found is not None and not answer.by_name,
        sources=_source_rows(cited),
        notes=("The graph is larger than what was read of it.",) if answer.partial else (),
        confidence=1.0,
    )


ASKED = "asked"
"""Field of a thing that was found: what was asked of it, by the label of each."""


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _grid(grid: Grid) -> TableBlock:
    columns = tuple(_begun(one)[:300] for one in grid.columns[:MAX_COLUMNS])
    return TableBlock(columns=columns, rows=tuple(row[:MAX_COLUMNS] for row in grid.rows[:MAX_TABLE_ROWS]))


def _from_passages(answer: RuleAnswer) -> QuestionAnswer:
    plan = answer.understood.plan
    return QuestionAnswer(
        text=sanitize_answer(answer.written.text),
        read="passages",
        sources=_source_rows(answer.sources),
        unexplained=tuple(plan.words.split(", ")) if isinstance(plan, Unknown) and plan.words else (),
        confidence=max(0.0, min(1.0, answer.sure)),
    )


def _source_rows(sources: Sequence[Source]) -> tuple[SourceRow, ...]:
    return tuple(SourceRow(id=one.id[:300], title=one.title[:300], kind=one.type[:100]) for one in sources)


def _figures(rows: Sequence[Mapping[str, Any]]) -> tuple[FigureRow, ...]:
    return tuple(
        FigureRow(label=str(name)[:300], value=plain_cell(value)) for row in rows for name, value in row.items() if name
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> TableBlock:
    columns = tuple(dict.fromkeys(str(name) for row in rows for name in row))[:MAX_COLUMNS]
    cells = tuple(tuple(plain_cell(row.get(name)) for name in columns) for row in rows[:MAX_TABLE_ROWS])
    return TableBlock(columns=columns, rows=cells)


def plain_cell(value: Any) -> Cell:
    """A value as a table's cell; what is made of parts as text."""
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


class TaskRunner:
    """Works off one plan.

    Args:
        planner: who looks up between the waves; nobody where rules plan.
        inquirer: who works on steps without a tool.
        board: where it is seen how far the task is.
        journalled: names of the steps that have a result already: they cost nothing of the budget again.
        ask: answers the questions of steps; nobody does where it is `None`.
        by_rules: whether rules made the plan, of the user's words alone.
    """

    def __init__(
        self,
        running: TurnRun,
        context: TurnContext,
        caller: Caller,
        planner: Planner | None,
        inquirer: Inquirer | None,
        offered: tuple[Any, ...],
        meter: BudgetMeter,
        board: ProgressBoard,
        journalled: frozenset[str],
        ask: Ask | None = None,
        *,
        by_rules: bool = False,
    ) -> None:
        self._running, self._context, self._caller, self._inquirer, self._offered = running, context, caller, inquirer, offered
        self._meter, self._board, self._journalled, self._ask = meter, board, journalled, ask
        self.replanning = Replanner(running.steps, context, planner, meter)
        self._by_rules = by_rules

    async def run(self, plan: Plan, known: GoalKnowledge) -> WavesResult:
        """Work the plan off, or as much of it as the budget allows."""
        remaining: Remaining = plan.steps
        done: list[StepResult] = []
        stopped: Problem | None = None
        while remaining:
            wave, rest = next_wave(remaining)
            stopped = self._meter.over()
            if stopped is not None and not self._was_made(wave):
                break
            stopped = None
            results = await self._wave(wave, done)
            done += results
            now = _knowledge_after(known, done, rest)
            failures = [result for result in results if has_failed(result)]
            remaining = await self.replanning.replan_between_waves(wave[0].wave, now, failures) if rest else rest
            if remaining != rest:
                await self._board.adjusted(remaining)
        if remaining and stopped is not None:
            await self._board.left_out(remaining, stopped.code)
        stopped = stopped or _limit_problem(done, self._meter)
        made = plan.model_copy(update={"steps": tuple(result.step for result in done)})
        return WavesResult(_knowledge_after(known, done, ()), tuple(remaining), stopped, made)

    async def _wave(self, wave: Remaining, done: list[StepResult]) -> list[StepResult]:
        number = wave[0].wave
        await self._board.wave(number, wave)
        admitted = [(step, self._admit(step, done)) for step in wave]
        made = await asyncio.gather(*(self._step(step, calls) for step, calls in admitted), return_exceptions=True)
        if errors := [one for one in made if isinstance(one, BaseException)]:
            # The claim or the journal is gone, or the task waits: what the others gave is journalled.
            waits = [one for one in errors if isinstance(one, Paused)]
            raise min(waits, key=lambda one: one.patience) if len(waits) == len(errors) else _no_wait(errors)
        await self._board.wave_ended(number)
        return [one for one in made if isinstance(one, StepResult)]

    def _admit(self, step: Step, done: Sequence[StepResult]) -> Calls | ToolResult:
        """The calls of a step, or why it is not made. They are taken from the budget in the order of the plan, whoever works
        on it.
        """
        passed = {result.step.id for result in done if result.outcome.code == CONDITION}
        results = {result.step.id: result.outcome.answer for result in done if result.outcome.ok}
        if missing := missing_needs(step, {*results, *passed}):
            return ToolResult(False, f"it needs {', '.join(missing)}", code=NEEDED)
        if left_out := [id for id in drawn_from(step) if id in passed]:
            return ToolResult(False, f"it draws from {', '.join(left_out)}, which was not made", code=CONDITION)
        try:
            if step.when is not None and not holds(step.when, results):
                return ToolResult(False, "its condition does not hold", code=CONDITION)
            calls = plan_calls(step, results)
        except NoValue as error:
            return ToolResult(False, str(error), code=NO_VALUE)
        if isinstance(calls, ToolResult):
            return calls
        self._note_chosen(step, calls, done)
        if step.tool is None and step.question is None:
            return replace(calls, needed=[result for result in done if result.step.id in step.depends and result.outcome.ok])
        return Calls([replace(call, limit=self._meter.call()) for call in calls.made])

    def _note_chosen(self, step: Step, calls: Calls, done: Sequence[StepResult]) -> None:
        """Note whether a step of the rules goes through a set that its question, which is the user's words, chose.

        Of the things, its calls may then hold ids and titles alone. Whatever else is gone through, or drawn from a result, is
        nobody's wish.
        """
        if not self._by_rules or step.tool is None or step.each is None:
            return
        each, origins = step.each, self._running.origins
        source = next((one for one in done if one.step.id == each.of), None)
        drawn = [one for _, one, _ in find_placeholders(step.arguments)]
        plain = all(one.of is None and one.path in ("id", "title") for one in drawn) and each.path == "items"
        theirs = source is not None and origins.holds_ids([source.step.question, step.arguments])
        if plain and source is not None and not theirs and _chose_by_words(source):
            origins.choose(step.tool, (call.arguments for call in calls.made))
        else:
            origins.doubt(step.tool)

    async def _step(self, step: Step, calls: Calls | ToolResult) -> StepResult:
        began = time.perf_counter()
        outcome = calls if isinstance(calls, ToolResult) else await self._made(step, calls)
        result = StepResult(step, outcome, round((time.perf_counter() - began) * 1000))
        await self._board.step(result)
        return result

    async def _made(self, step: Step, calls: Calls) -> ToolResult:
        if step.tool is None and step.question is None:
            if self._inquirer is None:
                return ToolResult(False, "nobody can work on it", code="task.no_model")
            steps, room = self._running.steps, self._running.cognition.settings.plan_tokens
            found = block_text(needed_lines(calls.needed), room)
            return await work_on_step(
                steps, self._caller, self._meter, self._inquirer, self._context, step, self._offered, found
            )
        if step.each is None:
            return await self._call(f"task.step.{step.id}", step, calls.made[0])
        return await self._each(step, calls)

    async def _call(self, name: str, step: Step, call: StepCall) -> ToolResult:
        if call.limit is not None:
            return ToolResult(False, call.limit.detail, code=call.limit.code)
        if step.tool is not None:
            return await self._caller.call(name, step.tool, call.arguments)
        if self._ask is None:
            return ToolResult(False, "nobody can answer it", code="task.no_answer")
        return await self._ask(name, call.question)

    async def _each(self, step: Step, calls: Calls) -> ToolResult:
        """One call after the other, so that whoever takes the task over finds each under the number that it had."""
        name = f"task.step.{step.id}"
        stated = [[call.arguments, call.question] for call in calls.made]
        digest = hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

        async def begin() -> dict[str, Any]:
            return {"digest": digest}

        if (await self._running.steps.called(f"{name}.items", "task.items", begin))["digest"] != digest:
            return ToolResult(False, "what it goes through has changed since it began", code=CHANGED)
        return join_results([await self._call(f"{name}.{at}", step, call) for at, call in enumerate(calls.made, 1)])

    def _was_made(self, wave: Remaining) -> bool:
        """Whether an earlier attempt began this wave and has results of it, which are then told though the time is up."""
        names = {f"task.step.{step.id}" for step in wave}
        return bool(names & self._journalled) or any(
            known.startswith(f"{name}.") for name in names for known in self._journalled
        )


def _chose_by_words(source: StepResult) -> bool:
    """Whether a step asked a question as the plan has it, and its words alone chose the things of the answer."""
    asks = source.step.question is not None and source.step.each is None and not drawn_from(source.step)
    return asks and QuestionAnswer.model_validate(source.outcome.answer).by_words


@dataclass(frozen=True)
class StepCall:
    """One call of a step, its placeholders replaced."""

    arguments: dict[str, Any]
    question: str = ""
    limit: Problem | None = None
    """The limit of the budget that forbids it."""


@dataclass(frozen=True)
class Calls:
    """The calls of a step, in their order."""

    made: Sequence[StepCall]
    needed: Sequence[StepResult] = ()
    """What the steps gave that it needs, where a model works on it."""


def plan_calls(step: Step, results: Mapping[str, Any]) -> Calls | ToolResult:
    """The calls of a step: one, or one for each of its items; or why there are none.

    Args:
        results: what the steps that ended well gave, by their ids.

    Raises:
        NoValue: a placeholder gives nothing, or what is to be gone through is no list.
    """
    if step.each is None:
        return Calls([_filled(step, results)])
    items = look_up(step.each.path, results.get(step.each.of))
    if not isinstance(items, list):
        raise NoValue(f"{step.each.of} has no list at {step.each.path!r}")
    if len(items) > step.each.limit:
        return ToolResult(False, f"there are {len(items)} items, and it goes through {step.each.limit}", code=TOO_MANY)
    return Calls([_filled(step, results, item) for item in items])


def _filled(step: Step, results: Mapping[str, Any], item: Any = None) -> StepCall:
    return StepCall(fill_placeholders(step.arguments, results, item), fill_placeholders(step.question or "", results, item))


def join_results(outcomes: Sequence[ToolResult]) -> ToolResult:
    """What the calls of one step gave together: it went well where all did. Where some failed, the others still count."""
    failed = [(at, one) for at, one in enumerate(outcomes, 1) if not one.ok]
    told = [one.text for one in outcomes if one.ok]
    if failed:
        told += [f"{len(failed)} of {len(outcomes)} failed:", *(f"{at}. {one.code}: {one.text}" for at, one in failed)]
    tools = tuple(dict.fromkeys(tool for one in outcomes for tool in one.tools))
    given = {"items": [one.answer for one in outcomes if one.ok]}
    return ToolResult(not failed, "\n".join(told), given, failed[0][1].code if failed else None, tools)


def has_failed(result: StepResult) -> bool:
    """Whether a step did not do what the plan wants: one whose condition does not hold is rightly left out."""
    return not result.outcome.ok and result.outcome.code != CONDITION


def _knowledge_after(known: GoalKnowledge, done: list[StepResult], remaining: Remaining) -> GoalKnowledge:
    return replace(
        known,
        worked=tuple(result for result in done if result.outcome.ok),
        failed=tuple(filter(has_failed, done)),
        left_out=tuple(result for result in done if result.outcome.code == CONDITION),
        remaining=remaining,
    )


def _limit_problem(done: list[StepResult], meter: BudgetMeter) -> Problem | None:
    if any(result.outcome.code == SPENT for result in done):
        return meter.over() or meter.spent_calls()
    return None
