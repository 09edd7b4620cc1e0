"""Background tasks: the loop from a goal to its report, each call gated, and what is answered of a task."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol, TypeGuard

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import (
    Effect,
    Forbidden,
    Label,
    Message,
    Nothing,
    OriginKind,
    Principal,
    Risk,
    Rpc,
    ServiceError,
    Tool,
    merge_labels,
)
from phronesis_contracts.answers import Analysis, AnswerData, MemoryProcess
from phronesis_contracts.approvals import Ruling
from phronesis_contracts.constitution.insight import CONTRADICTIONS_TOOL
from phronesis_contracts.constitution.lists import GET_NODE_TOOL, LIST_FOUNDATION_TOOL, LIST_VISION_TOOL, LISTS
from phronesis_contracts.constitution.paths import DECISIONS_SINCE_TOOL, DUE_WORK_TOOL, SUBGRAPH_TOOL
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.session import GET_CALENDAR_TOOL
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import RECALL_TOOL, REMEMBER_TOOL
from phronesis_contracts.orchestrator import TaskBudget, Turn, TurnRef
from phronesis_contracts.tasks import (
    STRATEGY_EFFECT,
    TASK_ANSWER,
    TASK_CANCEL,
    TASK_GET,
    TASK_LIST,
    TASK_OUTCOME,
    AnswerTask,
    AskPerson,
    ListTasks,
    NoPlan,
    NoResult,
    PersonAnswered,
    PlannedCall,
    StrategiesArm,
    StrategyEffect,
    Task,
    TaskNotEnded,
    TaskOutcome,
    TaskRef,
    TaskReport,
    Tasks,
    Verified,
    VerifiedBy,
    Waited,
    WaitUntil,
)
from phronesis_contracts.tools import legal_name, schema_of_input
from phronesis_contracts.twin import SURVEY_TOOL

from ..agents.cognition.preparation import can_look_ahead, fetch_tool_records, request_look_ahead
from ..agents.cognition.thought import ReasoningContext
from ..agents.counsel.tools import list_offered_tools, reach_outside_tools, render_answer
from ..agents.executor import ExecutedCall, ToolExecutor, problem_result, risk_table
from ..agents.loops import LoopAnswer
from ..agents.tools import Admitted, BadArguments, Gate, NotAdmitted, Toolbox, may_use
from ..approvals.policy import ApprovalWaits, Paused, Verdict
from ..models.reasoner import RULES, CallResult, Inquirer, Interpreter, Reasoner, ToolCall, TurnContext, Wish
from ..turns.execution import TurnRun, await_store
from ..turns.turn import Claim, fill_goal, goal_ids, starting_event
from .decisions import BudgetMeter, is_good, kept_plan, make_plan, shorten_plan, validate_task
from .deliver import Asker, GoalPlan, check_steps, judge, judge_by_evidence, write_goal_report
from .goals import GoalPlanner, goal_words, read_goal, words_of
from .ports import (
    BadPlan,
    Criticism,
    GoalKnowledge,
    Lesson,
    Plan,
    Planner,
    Step,
    Strategies,
    Strategy,
    TaskStore,
    TaskWaits,
    Templates,
    ToolResult,
    WaitOrder,
    WrittenReport,
    check_plan,
    goal_signature,
    is_held_out,
    usable_plan,
)
from .report import describe_tools, known_strategy_lines, save_report, write_report
from .runner import ProgressBoard, QuestionDesk, TaskRunner, WavesResult

_OF_RULES: tuple[Tool[Any, Any], ...] = (
    SURVEY_TOOL,
    RECALL_TOOL,
    DECISIONS_SINCE_TOOL,
    DUE_WORK_TOOL,
    CONTRADICTIONS_TOOL,
    GET_NODE_TOOL,
    SUBGRAPH_TOOL,
    GET_CALENDAR_TOOL,
    LIST_FOUNDATION_TOOL,
    LIST_VISION_TOOL,
    *(tool for layer, tool in LISTS.items() if layer not in (Layer.FOUNDATION, Layer.VISION)),
)
"""What the rules read with, whatever agent is asked."""


def list_task_tools(agent: AgentProfile | None, who: Principal, *, rules: bool) -> dict[str, Tool[Any, Any]]:
    """The tools of a task by name, always less what the caller may not call.

    Args:
        agent: whose list counts.
        rules: whether rules plan, which read with tools of their own beside it.
    """
    own = list_offered_tools(agent, who) if agent is not None else ()
    listed = (*own, *_OF_RULES) if rules or agent is None else own
    return {tool.name: tool for tool in listed if tool.open_to(who) and (agent is None or may_use(agent, tool))}


WAIT_TOOL = Tool(
    "task.wait.v1",
    "Wait for a date: steps that depend on this one are made after it. The task keeps nothing busy meanwhile.",
    Rpc("orchestrator.v1.task.wait", WaitUntil, Waited),
)
ASK_TOOL = Tool(
    "task.ask.v1",
    "Ask the person whose task it is, and wait for the answer. Ask only what no other tool can tell.",
    Rpc("orchestrator.v1.task.ask", AskPerson, PersonAnswered),
)
WAITS: Mapping[str, Tool[Any, Any]] = {tool.name: tool for tool in (WAIT_TOOL, ASK_TOOL)}
"""What tasks wait with. These are no tools of the catalog: outside of a task there is nothing that could wait."""
UNANSWERED = "task.unanswered"
"""Code of a question that nobody answered in time."""
_FURTHEST = timedelta(days=366)
"""How far ahead a task may wait for a date."""


class TaskPaused(Paused):
    """The task goes no further before a date, or without its owner's answer."""

    def __init__(self, waits: TaskWaits, order: WaitOrder) -> None:
        super().__init__(order.step)
        self._waits, self._order = waits, order
        self.patience = 1 if order.kind == "person" else 2

    async def begin(self, approvals: ApprovalWaits, claim: Claim) -> None:
        await self._waits.begin(claim, self._order)

    @property
    def detail(self) -> dict[str, Any]:
        order = self._order
        asked = {"question": order.question, "choices": list(order.choices)} if order.kind == "person" else {}
        return {"for": order.kind, "until": order.due.isoformat(), **asked}


class TaskCaller:
    """Calls tools for one task.

    Args:
        tools: those at hand, by name. The report is saved by `remember`, which stands beside them.
        waits: where it can wait; it cannot where it is `None`.
    """

    def __init__(self, running: TurnRun, tools: dict[str, Tool[Any, Any]], waits: TaskWaits | None = None) -> None:
        self._running, self._waits = running, waits
        self._plan = tuple(tools)
        self._table = risk_table(tools.values())
        mine = {REMEMBER_TOOL.name: REMEMBER_TOOL} if REMEMBER_TOOL.open_to(running.claim.who) else {}
        self._box = Toolbox({legal_name(name): tool for name, tool in {**tools, **mine}.items()}, ())

    @property
    def tools(self) -> tuple[str, ...]:
        return self._plan

    def foresee(self, name: str, arguments: dict[str, Any]) -> Verdict:
        """What the policy would say of a call now; it is not made."""
        called = ToolCall(name=legal_name(name), arguments=json.dumps(arguments))
        return self._executor(_TaskHooks(self._running)).foresee(called)

    def _executor(self, hooks: _TaskHooks) -> ToolExecutor:
        return ToolExecutor(self._running, self._box, _TaskGate(self._box, self._running.claim.who), hooks, self._table)

    async def call(self, step: str, name: str, arguments: dict[str, Any], *, ours: bool = False) -> ToolResult:
        if self._waits is not None and (tool := _find_wait(name)) is not None:
            return await self._wait(self._waits, step, tool, arguments)
        manner = _TaskHooks(self._running)
        called = ToolCall(name=legal_name(name), arguments=json.dumps(arguments))
        made = await self._executor(manner).call(step, called, ours=ours)
        return ToolResult(made.called.ok, made.result.text, manner.answer, made.called.code, (name,))

    async def _wait(self, waits: TaskWaits, step: str, tool: Tool[Any, Any], arguments: dict[str, Any]) -> ToolResult:
        """What was waited for. Raises `TaskPaused`: it has to be waited for first."""
        try:
            request = self._box.arguments(legal_name(tool.name), json.dumps(arguments), self._running.claim.who)
        except BadArguments as error:
            return ToolResult(False, str(error)[:500], code="bad_arguments", tools=(tool.name,))
        ended = await await_store(waits.found(self._running.claim, step))
        if isinstance(request, AskPerson):
            if ended is None:
                due = datetime.now(UTC) + timedelta(seconds=request.seconds)
                raise TaskPaused(waits, WaitOrder(step, "person", due, request.question, request.choices))
            if ended.answer is None:
                return ToolResult(False, "nobody answered in time", code=UNANSWERED, tools=(tool.name,))
            # A choice may have been put into words by a text that the task read: then to choose it gives it no more weight.
            if not (request.choices and self._running.origins.untrusted):
                self._running.origins.hear(ended.answer)
            said = PersonAnswered(answer=ended.answer)
            return ToolResult(True, render_answer(said), said.model_dump(mode="json"), tools=(tool.name,))
        assert isinstance(request, WaitUntil)
        now = datetime.now(UTC)
        until = request.until or now + timedelta(seconds=request.seconds or 0)
        if ended is None and until > now + _FURTHEST:
            return ToolResult(False, "a task waits for a year at most", code="bad_arguments", tools=(tool.name,))
        if ended is None and until > now:
            raise TaskPaused(waits, WaitOrder(step, "date", until))
        came = Waited(until=ended.due if ended is not None else until)
        return ToolResult(True, render_answer(came), came.model_dump(mode="json"), tools=(tool.name,))


def _find_wait(name: str) -> Tool[Any, Any] | None:
    return next((tool for tool in WAITS.values() if name in (tool.name, legal_name(tool.name))), None)


class _TaskGate(Gate):
    """A plan has an order and a budget of its own: what is left is that the tool is there and its arguments fit."""

    def admit(self, call: ToolCall) -> Admitted:
        if call.name not in self._box.tools:
            raise NotAdmitted("unknown_tool", f"the tools are: {', '.join(self._box.tools)}")
        try:
            return Admitted(call, self._box.arguments(call.name, call.arguments, self._who))
        except BadArguments as error:
            raise NotAdmitted("bad_arguments", str(error)[:500]) from error


class _TaskHooks:
    """How a task makes one call: all answers but memories are journalled, so that its state can be rebuilt."""

    def __init__(self, running: TurnRun) -> None:
        self._running = running
        self.answer: dict[str, Any] | None = None

    def check(self, request: Message) -> None:
        pass

    def phase(self, tool: Tool[Any, Any]) -> str:
        return "task step"

    def journals(self, tool: Tool[Any, Any]) -> bool:
        # Journals hold no text of memories: whoever takes the task over asks again.
        return tool.risk > Risk.READ or not tool.rpc.subject.startswith("memory.")

    def refused(self, problem: dict[str, Any]) -> bool:
        return bool(problem["status"] < 500)

    async def describe(self, made: ExecutedCall) -> CallResult:
        if made.answer is None:
            problem = made.problem or {"code": "internal", "detail": ""}
            return problem_result(made.call, problem["code"], problem["detail"])
        self.answer = made.answer.model_dump(mode="json", by_alias=True)
        return CallResult(made.call, render_answer(made.answer), "rows")


log = logging.getLogger(__name__)

GOAL = 2_000
"""Characters of a goal that strategies are looked for with."""


_STRATEGY = TypeAdapter(Strategy)


async def gather_knowledge(
    running: TurnRun,
    turn: TurnContext,
    templates: Templates,
    strategies: Strategies,
    tools: Mapping[str, Tool[Any, Any]],
    offered: tuple[dict[str, Any], ...],
) -> tuple[GoalKnowledge, StrategiesArm]:
    """The goal with what worked before, and whether that was found, withheld, or not there.

    It is journalled, so that whoever takes the task over plans with the same.
    """
    who, goal, agent = running.claim.who, turn.user_text, running.claim.agent
    signature = goal_signature(goal, agent)
    template = await templates.template(who, signature, counted=not running.claim.dry)

    async def recalled() -> dict[str, Any]:
        settings = running.cognition.settings
        shown, names = settings.strategies, tuple(tools)
        found = await strategies.recall(who, goal[:GOAL], shown, agent, names) if shown else ()
        arm = StrategiesArm.USED if found else StrategiesArm.NONE
        if found and is_held_out(who.tenant, who.user, signature, settings.strategy_holdout):
            arm, found = StrategiesArm.HELD_OUT, ()
        return {"strategies": [to_jsonable_python(one) for one in found], "tools": list(names), "arm": arm.value}

    given = await running.steps.called("task.recall", "task.recall", recalled)
    worked = tuple(map(_STRATEGY.validate_python, given["strategies"]))
    texts = [f"{one.goal} {one.approach} {one.avoid}" for one in worked]
    running.origins.read((label for one in worked for label in one.labels), texts)
    if worked:
        log.info("PROVEN STRATEGIES: %d for this task", len(worked))
    names = tuple(given["tools"])
    described = describe_tools(tools, offered)
    known = GoalKnowledge(goal, names, worked, described, contracts=tools, template=usable_plan(template, names))
    # A journal of the version before names no arm.
    return known, StrategiesArm(given.get("arm", StrategiesArm.USED if worked else StrategiesArm.NONE))


async def look_ahead_on_goal(
    running: TurnRun, reasoner: Reasoner, turn: TurnContext, known: GoalKnowledge, tools: Mapping[str, Tool[Any, Any]]
) -> GoalKnowledge:
    """The same with a look ahead, where the agent has one and it is switched on: it is shown what worked, and what is known of
    the tools.

    Args:
        reasoner: who may look ahead.
    """
    if not running.cognition.settings.task_look_ahead or not can_look_ahead(reasoner, turn):
        return known
    records = await fetch_tool_records(running, tools.values())
    signals = ReasoningContext.build(tools=tools.values(), records=records, said=known.goal).to_prompt()
    shown = "\n".join([*(line.text for line in known_strategy_lines(known.strategies)), signals])
    return replace(known, ahead=await request_look_ahead(running, reasoner, turn, shown))


PURPOSES = frozenset({"decompose", "criticise", "task_report"})
"""The prompts that an agent needs for tasks with a model."""
LOOKING_UP = "evaluate"
"""The prompt without which a plan stays as it was made."""


@dataclass(frozen=True)
class Background:
    """The loop of background tasks (no other loop has waves)."""

    store: TaskStore
    strategies: Strategies
    waits: TaskWaits | None = None
    """`None` where tasks cannot wait."""
    rules_alone: bool = False
    """Whether goals are left to the rules though a model could plan them, too. A small one plans what cannot be done: of 36
    tasks it ended ten otherwise than they should, the rules alone four (`evals tasks --own --model local --limit 6`)."""

    async def run(self, running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
        """Work on the goal of a turn.

        Args:
            reasoner: who thinks; rules where it is no `Planner`.

        Raises:
            NoPlan: nobody could make a plan for the goal.
        """
        tools = list_task_tools(turn.agent, running.claim.who, rules=not can_plan(reasoner, turn))
        if turn.agent is not None and can_plan(reasoner, turn):
            tools |= await reach_outside_tools(running, turn.agent)
        if self.waits is not None:
            tools |= WAITS
        return await _TaskRun(self, running, reasoner, turn, tools).answered()


def can_plan(reasoner: Reasoner, turn: TurnContext) -> bool:
    """Whether a reasoner plans the tasks of an agent: a model that has the prompts for it. Else rules do, and say so."""
    return isinstance(reasoner, Planner) and turn.agent is not None and set(turn.agent.prompts) >= PURPOSES


def _definitions(tools: Mapping[str, Tool[Any, Any]]) -> tuple[dict[str, Any], ...]:
    """Tools as a model is told them."""
    return Toolbox({legal_name(name): tool for name, tool in tools.items()}, (), schema_of_input).definitions()


class _TaskRun:
    def __init__(
        self, parts: Background, running: TurnRun, reasoner: Reasoner, turn: TurnContext, tools: dict[str, Tool[Any, Any]]
    ) -> None:
        self._parts, self._running, self._turn, self._reasoner = parts, running, turn, reasoner
        plans = isinstance(reasoner, Planner) and can_plan(reasoner, turn) and not parts.rules_alone
        self._planner = reasoner if isinstance(reasoner, Planner) and plans else None
        self._name = reasoner.name if self._planner is not None else RULES.name
        self._tools = tools
        self._caller = TaskCaller(running, tools, parts.waits)
        self._goal: GoalPlan | None = None
        """The goal as rules planned it; absent where a model did."""
        self._desk: QuestionDesk
        """Who answers the questions of steps; there once they are worked on."""
        self._offered = _definitions(tools)
        self._board = ProgressBoard(running, parts.store)

    async def answered(self) -> LoopAnswer:
        await self._running.show("task_started")
        meter = await self._meter()
        if self._planner is not None and (limit := meter.nothing()):
            raise NoPlan(limit.detail, field=limit.field)
        why = await self._by_rules()
        known, arm = await self._known()
        with self._running.phase("task plan"):
            plan = await self._plan(known, meter, why)
        await self._board.planned(plan, tuple(one.id for one in known.strategies), arm)
        if self._running.claim.dry:
            return await self._foreseen(plan)
        runner = await self._runner(meter)
        with self._running.phase("task waves"):
            done = await runner.run(plan, known)
        await self._board.update(
            replanned=runner.replanning.asked,
            adjusted=runner.replanning.adjusted,
            evaluations=runner.replanning.evaluations,
            tool_calls=meter.calls,
            stopped=done.stopped,
        )
        return await self._ended(done, meter)

    async def _foreseen(self, plan: Plan) -> LoopAnswer:
        """The end of a dry run: what each step would do, and what a person would be asked about."""
        calls = tuple(foresee_step(self._caller, step) for step in plan.steps)
        await self._board.update(calls=calls)
        await self._running.show("task_ended", score=None, document=None)
        return LoopAnswer(describe_calls(plan, calls), self._turn.directive, "", None)

    async def _by_rules(self) -> str:
        """Take the rules' plan where no model plans; why there is none."""
        if self._planner is not None:
            return ""
        with self._running.phase("task plan"):
            goal, why = await self._plan_by_rules()
        if goal is not None:
            self._take(goal)
        return why

    async def _plan(self, known: GoalKnowledge, meter: BudgetMeter, why: str) -> Plan:
        """The plan: the rules' where no model plans; else the model's, the rules' in its place, or a kept one.

        Args:
            why: what the rules said, where no model plans and they have none.

        Raises:
            NoPlan: nobody could make one.
        """
        if self._goal is None:
            if self._planner is None:
                raise NoPlan(why)
            found = await make_plan(self._running.steps, self._turn, self._planner, known, meter)
            if isinstance(found, Plan):
                return found
            goal = await self._plan_instead()
            if goal is None:
                if (kept := kept_plan(known)) is not None:
                    return kept
                raise NoPlan(found or "no plan could be made for this goal")
            self._running.degrade("model")
            self._take(goal)
        assert self._goal is not None, "the rules planned it"
        return shorten_plan(check_plan(self._goal.plan, tuple(self._tools), works=False), known.strategies)

    async def _plan_instead(self) -> GoalPlan | None:
        """The rules' plan in place of a model's that failed; `None` where they have none, or cannot be asked."""
        try:
            return (await self._plan_by_rules())[0]
        except ServiceError as error:
            self._running.defer(error)
            log.warning("the rules could not plan either: %s", error.code)
            return None

    async def _plan_by_rules(self) -> tuple[GoalPlan | None, str]:
        """The rules' plan, or why there is none; journalled, so that whoever takes the task over works off the same."""
        agent, who = self._turn.agent, self._running.claim.who
        tools = {**self._tools, **list_task_tools(agent, who, rules=True)}

        async def make() -> dict[str, Any]:
            desk = QuestionDesk(self._running, self._turn, None, tools)
            reads = {name: tool for name, tool in tools.items() if tool.risk is Risk.READ}
            asker = Asker(self._running, self._turn, desk, reads)
            planner = GoalPlanner(asker, tools, self._turn.user_text)
            try:
                goal = await planner.plan()
                check_plan(goal.plan, tuple(tools), works=False, contracts=tools)
                return {"goal": goal.model_dump(mode="json"), "why": ""}
            except NoPlan as declined:
                if asker.away is not None:  # what is not on record may only not have been read
                    self._running.defer(asker.away)
                return {"goal": None, "why": declined.detail}
            except BadPlan as wrong:
                log.warning("a plan of the rules is no good: %s", wrong)
                return {"goal": None, "why": words_of(self._turn.user_text).sentence("unfit")}

        given = await self._running.steps.called("task.rules", "task.rules", make)
        return (GoalPlan.model_validate(given["goal"]) if given["goal"] is not None else None), given["why"]

    def _take(self, goal: GoalPlan) -> None:
        """Take the plan of rules, which nobody but rules works off and reports on."""
        self._tools = {**self._tools, **list_task_tools(self._turn.agent, self._running.claim.who, rules=True)}
        self._caller, self._offered = TaskCaller(self._running, self._tools, self._parts.waits), _definitions(self._tools)
        self._planner, self._name, self._goal = None, RULES.name, goal
        # The rules read the user's words alone: what they order is the user's own wish. Ids that an event put there are not.
        origins = self._running.origins
        if not self._reads_own_words():
            return
        for step in goal.plan.steps:
            if step.tool is None or self._tools[step.tool].risk <= Risk.READ or origins.splits_ids(step.arguments):
                continue
            origins.wishes[step.tool] = (*origins.wishes.get(step.tool, ()), Wish(tool=step.tool, arguments=step.arguments))

    def _reads_own_words(self) -> bool:
        """Whether the goal says the same whatever ids an event put into it, so that nothing was read out of an id."""
        request = self._running.claim.request
        ids = {id: _SOME_ID for id in goal_ids(request)}
        return not ids or _parts_with(fill_goal(request), ids) == _parts_with(fill_goal(request, ids), {})

    async def _meter(self) -> BudgetMeter:
        """The budget, counted from the first attempt's beginning."""
        order = self._running.claim.request.task

        async def now() -> dict[str, Any]:
            return {"at": datetime.now(UTC).isoformat()}

        begun = await self._running.steps.called("task.begun", "task.begun", now)
        budget = order.budget if order is not None else TaskBudget()
        waits = self._parts.waits
        waited = await await_store(waits.waited(self._running.claim)) if waits is not None else 0.0
        return BudgetMeter(budget, self._running.steps, datetime.fromisoformat(begun["at"]), waited=waited)

    async def _known(self) -> tuple[GoalKnowledge, StrategiesArm]:
        parts, running, turn = self._parts, self._running, self._turn
        known, arm = await gather_knowledge(running, turn, parts.store, parts.strategies, self._tools, self._offered)
        known = replace(known, event=starting_event(running.claim.request))
        if self._planner is not None:
            known = await look_ahead_on_goal(running, self._reasoner, turn, known, self._tools)
        return known, arm

    async def _runner(self, meter: BudgetMeter) -> TaskRunner:
        inquirer = self._reasoner if self._planner is not None and isinstance(self._reasoner, Inquirer) else None
        journalled = await self._parts.store.journalled(self._running.claim)
        looks_up = self._turn.agent is not None and LOOKING_UP in self._turn.agent.prompts
        planner = self._planner if looks_up else None
        model = self._reasoner if self._planner is not None and isinstance(self._reasoner, Interpreter) else None
        reads = list_task_tools(self._turn.agent, self._running.claim.who, rules=True)
        self._desk = desk = QuestionDesk(self._running, self._turn, model, {**reads, **self._tools})
        return TaskRunner(
            *(self._running, self._turn, self._caller, planner, inquirer, self._offered, meter, self._board, journalled),
            desk.ask,
            by_rules=self._goal is not None,
        )

    async def _ended(self, done: WavesResult, meter: BudgetMeter) -> LoopAnswer:
        """The report, the document, the critic's word, and what can be learnt once somebody verifies it, in this order."""
        steps = self._running.steps
        planner = self._planner if meter.model() is None else None
        with self._running.phase("task report"):
            limits = _report_limits(done, self._running.degraded)
            checks = await self._checks(done)
            by_rules = partial(self._written, checks=checks)
            text = await write_report(steps, self._turn, planner, by_rules, done.known, limits)
            report = await save_report(self._caller, self._running.claim, text, self._name if planner else RULES.name)
        if report.document_id is None:
            self._running.degrade("document")
        if done.stopped is not None:
            self._running.degrade(done.stopped.field or "budget")
        allowed, held = self._allowed(done, text, checks, asked=planner is not None)
        score = await validate_task(steps, self._turn, planner, done.known, text, allowed)
        await self._board.update(score=score, report=report)
        lesson, verified = await self._lesson(done, text, score, held)
        if verified is not None:
            await self._board.update(verified=verified)
            await self._learnt(lesson, verified)
        await self._running.show("task_ended", score=score, document=report.document_id)
        return LoopAnswer(_report_text(report), self._turn.directive, "", None, _analysis(report, done, score))

    async def _checks(self, done: WavesResult) -> dict[str, bool]:
        """By step, whether what it gave is so when it is read again; nothing of a model's plan, or of a stopped one."""
        if self._goal is None or done.stopped is not None:
            return {}
        return await check_steps(self._goal, done.known, self._caller, self._desk.ask)

    def _written(self, known: GoalKnowledge, checks: Mapping[str, bool]) -> WrittenReport | None:
        if self._goal is None:
            return None
        return write_goal_report(self._goal, known, checks, goal_words()[self._goal.language].sentence)

    def _allowed(
        self, done: WavesResult, text: WrittenReport, checks: Mapping[str, bool], *, asked: bool
    ) -> tuple[Criticism, bool]:
        """The most that the result may score, and whether rules verified all of it."""
        skipped = len(done.skipped)
        if self._goal is not None:
            say = goal_words()[self._goal.language].sentence
            return judge(self._goal, done.known, text, skipped, checks, say)
        writes = any(part.deed == "write" for part in read_goal(done.known.goal))
        return judge_by_evidence(done.known, text, skipped, asked=asked, writes=writes), False

    async def _lesson(
        self, done: WavesResult, text: WrittenReport, score: float | None, held: bool
    ) -> tuple[Lesson, Verified | None]:
        """What can be learnt, and what a checker says of the result; journalled, for whoever verifies it later.

        Args:
            held: whether rules read back or asked again all that was asked for, and it was so.
        """
        running, goal = self._running, self._turn.user_text
        claim = running.claim

        async def make() -> dict[str, Any]:
            told = describe_approach(goal, done, text)
            versions = running.vocabularies
            lesson = Lesson(
                task_id=claim.turn_id,
                conversation_id=claim.conversation_id,
                agent=claim.agent,
                goal=goal[:GOAL],
                signature=goal_signature(goal, claim.agent),
                plan=done.plan,
                approach=told.approach,
                tools_used=told.tools_used,
                avoid=told.avoid,
                score=score,
                succeeded=done.stopped is None and bool(done.known.worked),
                labels=merge_labels((Label(kind=OriginKind.USER),), running.origins.labels),
                ontology=versions.ontology_version(claim.who.tenant) if versions is not None else "",
            )
            verified = verified_by_checker(held, score)
            said = verified.model_dump(mode="json") if verified is not None else None
            return {"lesson": lesson.model_dump(mode="json"), "verified": said}

        kept = await running.steps.called("task.lesson", "task.lesson", make)
        verified = Verified.model_validate(kept["verified"]) if kept["verified"] is not None else None
        return Lesson.model_validate(kept["lesson"]), verified

    async def _learnt(self, lesson: Lesson, verified: Verified) -> None:
        """Learn from a result that a checker verified: the template first, then the strategies."""
        claim = self._running.claim
        if is_worth_learning(lesson, verified):
            await self._parts.store.keep_template(claim, lesson.signature, lesson.plan)
        try:
            used = self._board.state.strategies
            await tell_memory(self._parts.strategies, claim.who, claim.turn_id, used, lesson, verified)
        except ServiceError as error:
            log.warning("memory could not be told of the task's outcome: %s", error.code)


_SOME_ID = "n0"
"""Stands for an id where only the words around it count."""


def _parts_with(goal: str, ids: Mapping[str, str]) -> str:
    """The parts of a goal, with others in place of the ids in them."""
    parts = repr(read_goal(goal))
    for id in sorted(ids, key=len, reverse=True):
        parts = re.sub(rf"(?<![\w-]){re.escape(id)}(?![\w-])", ids[id], parts)
    return parts


def verified_by_checker(held: bool, score: float | None) -> Verified | None:
    """What rules say of a result; `None` where a person has to.

    Args:
        held: whether they read back or counted again all that was asked for, and it was so.
    """
    return Verified(by=VerifiedBy.CHECKER, accepted=True, at=datetime.now(UTC)) if held and score == 1 else None


def is_worth_learning(lesson: Lesson | None, verified: Verified) -> TypeGuard[Lesson]:
    """Whether others are done like a task: its result was accepted, and it went well enough."""
    return lesson is not None and verified.accepted and lesson.succeeded and is_good(lesson.score) and bool(lesson.approach)


async def tell_memory(
    strategies: Strategies, who: Principal, task_id: str, used: tuple[str, ...], lesson: Lesson | None, verified: Verified
) -> None:
    """Raise or lower the strategies of a task whose outcome was verified, and keep its own where it was accepted.

    Args:
        used: ids of the strategies that it was planned with.
        lesson: what can be learnt of it; nothing of a task that is older than lessons.

    Raises:
        ServiceError: memory is away; the same may be told again.
    """
    await strategies.outcome(who, task_id, used, verified)
    if is_worth_learning(lesson, verified):
        await strategies.record(who, lesson, verified)


def describe_approach(goal: str, done: WavesResult, text: WrittenReport) -> Strategy:
    """How a task was done: the steps that its report rests on, their tools in order, and what failed on the way.

    Steps that only looked around and added nothing are not named: the next plan does without their tools.
    """
    kept = [one for one in done.known.worked if one.step.id in text.used or not one.step.optional]
    tools = tuple(dict.fromkeys(tool for one in kept for tool in one.outcome.tools))
    approach = "; ".join(f"{one.step.wave}. {one.step.description}" for one in kept)
    kind = f"{done.plan.kind}: " if done.plan.kind else ""
    avoid = "; ".join(f"{one.step.description} ({one.outcome.code})" for one in done.known.failed)
    return Strategy("", goal, f"{kind}{approach}"[:4_000], tools[:50], avoid[:4_000])


def _report_limits(done: WavesResult, degraded: Sequence[str]) -> tuple[str, ...]:
    """What a report has to say of its task beside the steps that failed."""
    stopped = (f"The work ended early: {done.stopped.detail}.",) if done.stopped is not None else ()
    left = (f"{step.description}: not done." for step in done.skipped if not step.optional)
    return (*stopped, *left, *(f"This was made without a part of the platform: {part}." for part in degraded))


def _report_text(report: TaskReport) -> str:
    return f"# {report.title}\n\n{report.text}"


def _analysis(report: TaskReport, done: WavesResult, score: float | None) -> Analysis:
    made = len(done.known.worked) + len(done.known.failed)
    trace = f"{made} steps were made, {len(done.known.failed)} of them failed, {len(done.skipped)} were left out."
    return Analysis(
        mode="B",
        memory_process=MemoryProcess(intent=done.plan.kind or "a background task", thought_trace=trace),
        answer=_report_text(report),
        data=AnswerData(summary_stats={"steps": made}),
        visualizations=report.charts,
        confidence=score if score is not None else 0.0,
    )


def foresee_step(caller: TaskCaller, step: Step) -> PlannedCall:
    """What a step would do, and whether a person would be asked, by the policy as it is now."""
    stated = step.model_dump(mode="json")
    call = PlannedCall.model_validate({**stated, "step": step.id})
    if step.tool is None:
        open_end = call.question is None
        return call.model_copy(update={"approval": "maybe", "reason": "a model chooses its calls"}) if open_end else call
    if step.tool in WAITS:
        return call.model_copy(update={"reason": "the task waits, and keeps nothing busy"})
    verdict = caller.foresee(step.tool, step.arguments)
    approval: Literal["no", "maybe", "yes", "refused"] = "no"
    if verdict.ruling is Ruling.REFUSE:
        approval = "refused"
    elif verdict.ruling is Ruling.ASK:
        approval = "yes"
    elif verdict.risk > Risk.READ or verdict.effect is Effect.OUTBOUND:
        # What is read by then may not be the user's own words, and may be what asks for the call.
        approval = "maybe"
    return call.model_copy(update={"effect": verdict.effect, "approval": approval, "reason": verdict.reason})


_ASKED = {
    "yes": " You would be asked first: {}.",
    "maybe": " You may be asked first, which depends on what is read by then: {}.",
    "refused": " It would be refused: {}.",
}


def describe_calls(plan: Plan, calls: Sequence[PlannedCall]) -> str:
    """The plan of a dry run, in Markdown."""
    lines = [f"# {plan.title or 'The plan'}", "", "Nothing was done. The steps would be:", ""]
    for step, call in zip(plan.steps, calls, strict=True):
        made = f" `{call.tool}` with `{json.dumps(call.arguments, ensure_ascii=False)}`." if call.tool else ""
        asked = f" Question: {call.question}" if call.question else ""
        lines.append(f"- {step.wave}. {step.description}.{made}{asked}{_ASKED.get(call.approval, '').format(call.reason)}")
    return "\n".join(lines)


class TaskQueries(TaskStore, Protocol):
    """Tasks as their owner sees them, too."""

    async def get(self, who: Principal, task_id: str) -> Task:
        """One task of the caller. Raises `NotFound`, also for a turn that is no task."""

    async def list(self, who: Principal, query: ListTasks) -> Tasks:
        """The caller's tasks, newest first."""

    async def lesson(self, who: Principal, task_id: str) -> Lesson | None:
        """What can be learnt of a task of the caller; `None` where nothing is kept of it."""

    async def verify(self, who: Principal, task_id: str, verified: Verified, template: Lesson | None) -> None:
        """Keep what the caller says of an ended task, and the plan of `template` or none. Raises `NotFound`."""

    async def effect(self, who: Principal) -> StrategyEffect:
        """How the caller's tasks ended with strategies, and where these were withheld."""


class Canceller(Protocol):
    async def cancel(self, call: Call, request: TurnRef) -> Turn:
        """Cancel a turn. Raises `NotFound`, `TurnEnded`."""


class Answers(Protocol):
    async def answer(self, call: Call, request: AnswerTask) -> TaskRef:
        """Take the owner's answer to what a task asks. Raises `NotFound`, `NotWaiting`, `BadRequest`."""


class TaskHandlers:
    """The handlers of tasks.

    Args:
        turns: cancels the turn of a task, and stops it where it runs.
        strategies: who is told of outcomes.
        wake: wakes the outbox.
        answers: takes what tasks asked.
        resumed: called when a task goes on, to wake a worker.
    """

    def __init__(
        self,
        tasks: TaskQueries,
        turns: Canceller,
        strategies: Strategies,
        wake: Callable[[], None],
        answers: Answers,
        resumed: Callable[[], None],
    ) -> None:
        self._tasks, self._turns, self._strategies, self._wake = tasks, turns, strategies, wake
        self._answers, self._resumed = answers, resumed

    async def get(self, call: Call, request: TaskRef) -> Task:
        return await self._tasks.get(call.who, request.task_id)

    async def list(self, call: Call, request: ListTasks) -> Tasks:
        return await self._tasks.list(call.who, request)

    async def cancel(self, call: Call, request: TaskRef) -> Task:
        await self._tasks.get(call.who, request.task_id)
        await self._turns.cancel(call, TurnRef(turn_id=request.task_id))
        return await self._tasks.get(call.who, request.task_id)

    async def answer(self, call: Call, request: AnswerTask) -> Task:
        """Answer what a task asks: it goes on. Raises `NotFound`, `NotWaiting`, `BadRequest`, `Forbidden`."""
        if call.who.inbox is not None:
            raise Forbidden("a task asks a person, and no system on the bus")
        await self._answers.answer(call, request)
        self._resumed()
        return await self._tasks.get(call.who, request.task_id)

    async def outcome(self, call: Call, request: TaskOutcome) -> Task:
        """Keep a person's word about a task, and learn from it. The same word again changes nothing, and another one counts.

        Raises:
            NotFound: the caller has no such task.
            TaskNotEnded: nobody can say yet what came of it.
            NoResult: there is no report to accept.
            ServiceError: memory is away; the word is kept, and to say it again learns from it.
        """
        who, id = call.who, request.task_id
        task = await self._tasks.get(who, id)
        if not task.status.ended:
            raise TaskNotEnded("the task has not ended yet")
        if task.dry_run or (request.accepted and task.progress.report is None):
            raise NoResult("the task ended without a report")
        verified, lesson = _say(task, request), await self._tasks.lesson(who, id)
        if verified != task.progress.verified:
            await self._tasks.verify(who, id, verified, lesson if is_worth_learning(lesson, verified) else None)
            self._wake()
        await tell_memory(self._strategies, who, id, task.progress.strategies, lesson, verified)
        return await self._tasks.get(who, id)

    async def effect(self, call: Call, request: Nothing) -> StrategyEffect:
        return await self._tasks.effect(call.who)


def _say(task: Task, request: TaskOutcome) -> Verified:
    """What a person says, at the time when it was said first."""
    known = task.progress.verified
    new = Verified(by=VerifiedBy.PERSON, accepted=request.accepted, comment=request.comment, at=datetime.now(UTC))
    same = known is not None and known.model_copy(update={"at": new.at}) == new
    return known if known is not None and same else new


async def serve_tasks(
    bus: Bus,
    tasks: TaskQueries,
    turns: Canceller,
    strategies: Strategies,
    wake: Callable[[], None],
    answers: Answers,
    resumed: Callable[[], None],
) -> None:
    handlers = TaskHandlers(tasks, turns, strategies, wake, answers, resumed)
    await serve(bus, TASK_ANSWER, handlers.answer)
    await serve(bus, TASK_GET, handlers.get)
    await serve(bus, TASK_LIST, handlers.list)
    await serve(bus, TASK_CANCEL, handlers.cancel)
    await serve(bus, TASK_OUTCOME, handlers.outcome)
    await serve(bus, STRATEGY_EFFECT, handlers.effect)
