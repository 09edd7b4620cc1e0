"""The loop of background tasks: from a goal to its report, each decision journalled, and what worked kept for the next one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts import Tool
from phronesis_contracts.analysis import Analysis, AnswerData, MemoryProcess
from phronesis_contracts.faces import legal, told
from phronesis_contracts.tasks import NoPlan, TaskBudget, TaskReport

from ..counsel.desk import reached
from ..inquiry import Inquirer
from ..loops.router import Answered
from ..reasoner import Reasoner, TurnContext
from ..running import Running
from ..toolbox import Toolbox
from . import rules
from .board import Board
from .budget import Meter
from .caller import TaskCaller, at_hand
from .critic import is_good, validate_task
from .decompose import decomposed
from .knowing import GOAL, known_of, thought_ahead
from .ports import Known, Planner, Strategies, Strategy, TaskStore, Written
from .report import saved, written
from .runner import TaskRunner, Worked
from .templates import signature

log = logging.getLogger(__name__)

PURPOSES = frozenset({"decompose", "criticise", "task_report"})
"""The prompts that an agent needs for tasks with a model."""
LOOKING_UP = "evaluate"
"""The prompt without which a plan stays as it was made (V-022)."""


@dataclass(frozen=True)
class Background:
    """The loop of background tasks (V-038: no other loop has waves).

    Args:
        store: the states and templates of tasks.
        strategies: the approaches that worked.
    """

    store: TaskStore
    strategies: Strategies

    async def run(self, running: Running, reasoner: Reasoner, turn: TurnContext) -> Answered:
        """Work on the goal of a turn.

        Args:
            running: the turn.
            reasoner: who thinks; rules where it is no `Planner`.
            turn: the context package, with the goal as its text.

        Raises:
            NoPlan: nobody could make a plan for the goal.
        """
        tools = at_hand(turn.agent, running.claim.who, rules=not plans(reasoner, turn))
        if turn.agent is not None and plans(reasoner, turn):
            tools |= await reached(running, turn.agent)
        return await _Task(self, running, reasoner, turn, tools).answered()


def plans(reasoner: Reasoner, turn: TurnContext) -> bool:
    """Whether a reasoner plans the tasks of an agent: a model that has the prompts for it. Else rules do, and say so."""
    return isinstance(reasoner, Planner) and turn.agent is not None and set(turn.agent.prompts) >= PURPOSES


class _Task:
    def __init__(
        self, parts: Background, running: Running, reasoner: Reasoner, turn: TurnContext, tools: dict[str, Tool[Any, Any]]
    ) -> None:
        self._parts = parts
        self._running = running
        self._turn = turn
        self._reasoner = reasoner
        self._planner = reasoner if isinstance(reasoner, Planner) and plans(reasoner, turn) else None
        self._name = reasoner.name if self._planner is not None else "extractive"
        self._tools = tools
        self._hands = TaskCaller(running, tools)
        box = Toolbox({legal(name): tool for name, tool in tools.items()}, (), told)
        self._offered: tuple[dict[str, Any], ...] = box.definitions()
        self._board = Board(running, parts.store)

    async def answered(self) -> Answered:
        """The reply."""
        await self._running.show("task_started")
        meter = await self._meter()
        if self._planner is not None and (limit := meter.nothing()):
            raise NoPlan(limit.detail, field=limit.field)
        known = await self._known()
        with self._running.phase("task plan"):
            plan = await decomposed(self._running.steps, self._turn, self._planner, rules.plan, known)
        await self._board.planned(plan, tuple(one.id for one in known.strategies))
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

    async def _meter(self) -> Meter:
        """The budget, counted from the first attempt's beginning."""
        order = self._running.claim.request.task

        async def now() -> dict[str, Any]:
            return {"at": datetime.now(UTC).isoformat()}

        begun = await self._running.steps.called("task.begun", "task.begun", now)
        budget = order.budget if order is not None else TaskBudget()
        return Meter(budget, self._running.steps, datetime.fromisoformat(begun["at"]))

    async def _known(self) -> Known:
        parts, running, turn = self._parts, self._running, self._turn
        known = await known_of(running, turn, parts.store, parts.strategies, self._tools, self._offered)
        if self._planner is None:
            return known
        return await thought_ahead(running, self._reasoner, turn, known, self._tools)

    async def _runner(self, meter: Meter) -> TaskRunner:
        inquirer = self._reasoner if self._planner is not None and isinstance(self._reasoner, Inquirer) else None
        journalled = await self._parts.store.journalled(self._running.claim)
        looks_up = self._turn.agent is not None and LOOKING_UP in self._turn.agent.prompts
        planner = self._planner if looks_up else None
        return TaskRunner(
            self._running, self._turn, self._hands, planner, inquirer, self._offered, meter, self._board, journalled
        )

    async def _ended(self, done: Worked, meter: Meter) -> Answered:
        """The report, the document, the critic's word, and what is learnt, in this order (V-043)."""
        steps = self._running.steps
        planner = self._planner if meter.model() is None else None
        with self._running.phase("task report"):
            text = await written(steps, self._turn, planner, rules.report, done.known)
            report = await saved(self._hands, self._running.claim, text, self._name if planner else "extractive")
        if report.document_id is None:
            self._running.degrade("document")
        if done.stopped is not None:
            self._running.degrade(done.stopped.field or "budget")
        score = await validate_task(steps, self._turn, planner, done.known, text, len(done.skipped))
        await self._board.update(score=score, report=report)
        await self._learnt(done, text, score)
        await self._running.show("task_ended", score=score, document=report.document_id)
        return Answered(_said(report), self._turn.directive, "", None, _analysis(report, done, score))

    async def _learnt(self, done: Worked, text: Written, score: float | None) -> None:
        claim, goal = self._running.claim, self._turn.user_text
        succeeded = done.stopped is None and bool(done.known.worked)
        good = succeeded and is_good(score)
        if used := self._board.state.strategies:
            await self._parts.strategies.outcome(claim, used, worked=good)
        if not good:
            return
        await self._parts.store.keep_template(claim, signature(goal, claim.agent), done.plan)
        told = approach(goal, done, text)
        await self._parts.strategies.record(claim, goal[:GOAL], told, score, succeeded=succeeded)


def approach(goal: str, done: Worked, text: Written) -> Strategy:
    """How a task was done: the steps that its report rests on, their tools in order, and what failed on the way (V-126).

    Steps that only looked around and added nothing are not named: the next plan does without their tools.
    """
    kept = [one for one in done.known.worked if one.step.id in text.used or not one.step.optional]
    tools = tuple(dict.fromkeys(tool for one in kept for tool in one.outcome.tools))
    told = "; ".join(f"{one.step.wave}. {one.step.description}" for one in kept)
    kind = f"{done.plan.kind}: " if done.plan.kind else ""
    avoid = "; ".join(f"{one.step.description} ({one.outcome.code})" for one in done.known.failed)
    return Strategy("", goal, f"{kind}{told}"[:4_000], tools[:50], avoid[:4_000])


def _said(report: TaskReport) -> str:
    return f"# {report.title}\n\n{report.text}"


def _analysis(report: TaskReport, done: Worked, score: float | None) -> Analysis:
    made = len(done.known.worked) + len(done.known.failed)
    trace = f"{made} steps were made, {len(done.known.failed)} of them failed, {len(done.skipped)} were left out."
    return Analysis(
        mode="B",
        memory_process=MemoryProcess(intent=done.plan.kind or "a background task", thought_trace=trace),
        answer=_said(report),
        data=AnswerData(summary_stats={"steps": made}),
        visualizations=report.charts,
        confidence=score if score is not None else 0.0,
    )
