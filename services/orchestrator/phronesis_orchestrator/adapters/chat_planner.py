"""The part of a language model that plans background tasks: it decomposes, evaluates, criticises and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from phronesis_contracts import Message

from ..budget import Line
from ..prompts import opening
from ..reasoner import Answer, Fault, TurnContext
from ..tasks.critic import CRITICISM
from ..tasks.plan import Plan
from ..tasks.ports import Criticism, Known, Verdict, Written
from ..tasks.replan import DECOMPOSITION, EVALUATION
from ..tasks.report import WRITING
from ..tasks.said import parse_criticism, parse_plan, parse_verdict, parse_written
from ..tasks.telling import of_plan, of_results, of_state, told
from .chat_calls import CallLimits, Calls, Purpose, filled, parsed

_SHARE = 2
"""What was done of a task takes at most one part in so many of its prompt."""
Said = TypeVar("Said", bound=Message)


def limits_of_tasks(router: CallLimits, final: CallLimits) -> dict[Purpose, CallLimits]:
    """Limits of the calls of tasks, each made once: the evaluation by the fast model (V-026), the others by the better one."""
    return {
        "decompose": replace(final, seconds=DECOMPOSITION, tries=1),
        "evaluate": replace(router, seconds=EVALUATION, tries=1),
        "criticise": replace(final, seconds=CRITICISM, effort="low", tries=1),
        "task_report": replace(final, seconds=WRITING, tries=1),
    }


class ChatPlanner:
    """A `Planner` with a language model behind it.

    Args:
        calls: makes the calls.
        budget: tokens of a prompt.
    """

    def __init__(self, calls: Calls, budget: int) -> None:
        self._of_tasks = calls
        self._room = budget

    async def decompose(self, turn: TurnContext, known: Known) -> Answer[Plan]:
        """Make a plan for a goal, or a new one for what is left of it. Raises `CallFailed`."""
        return await self._decided("decompose", turn, of_plan(known), parse_plan)

    async def evaluate(self, turn: TurnContext, known: Known) -> Answer[Verdict]:
        """Say whether what is left still makes sense, by the fast model. Raises `CallFailed`."""
        return await self._decided("evaluate", turn, of_state(known), parse_verdict)

    async def criticise(self, turn: TurnContext, known: Known, written: Written) -> Answer[Criticism]:
        """Say how well the goal was met. Raises `CallFailed`."""
        return await self._decided("criticise", turn, of_results(known), parse_criticism, written.text)

    async def write(self, turn: TurnContext, known: Known) -> Answer[Written]:
        """Write the report, and name the steps that it rests on: of those that worked alone. Raises `CallFailed`."""
        answer = await self._decided("task_report", turn, of_results(known), parse_written)
        if answer.value is None:
            return answer
        worked = {result.step.id for result in known.worked}
        used = tuple(id for id in dict.fromkeys(answer.value.used) if id in worked)
        return replace(answer, value=answer.value.model_copy(update={"used": used}))

    async def _decided(
        self,
        purpose: Purpose,
        turn: TurnContext,
        lines: Iterable[Line],
        parse: Callable[[str], Said | Fault],
        draft: str | None = None,
    ) -> Answer[Said]:
        block = told(lines, self._room // _SHARE)
        shown = replace(turn, thought=replace(turn.thought, plan=block))
        messages = filled(turn, lambda agent: opening(purpose, agent, shown, None, self._room, draft=draft))
        return await self._of_tasks.ask(purpose, messages, parsed(parse))
