"""Calling the tools of a task: by the one pair of hands, behind the one policy gate (V-036)."""

from __future__ import annotations

import json
from typing import Any

from phronesis_contracts import Message, Principal, Risk, Tool
from phronesis_contracts.constitution.insight import CONTRADICTIONS_TOOL
from phronesis_contracts.constitution.paths import DECISIONS_SINCE_TOOL, DUE_WORK_TOOL
from phronesis_contracts.faces import legal
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import RECALL_TOOL, REMEMBER_TOOL
from phronesis_contracts.twin import FIND_ENTITIES_TOOL, SURVEY_TOOL

from ..counsel.box import shown
from ..counsel.desk import offered
from ..gate import Admitted, Gate, NotAdmitted
from ..inquiry import Result, ToolCall
from ..policy.hands import Hands, table_with
from ..policy.outcomes import Made, note
from ..running import Running
from ..toolbox import BadArguments, Toolbox
from .ports import Outcome

_OF_RULES: tuple[Tool[Any, Any], ...] = (
    SURVEY_TOOL,
    FIND_ENTITIES_TOOL,
    RECALL_TOOL,
    DECISIONS_SINCE_TOOL,
    DUE_WORK_TOOL,
    CONTRADICTIONS_TOOL,
)
"""What the rules read with, whatever agent is asked."""


def at_hand(agent: AgentProfile | None, who: Principal, *, rules: bool) -> dict[str, Tool[Any, Any]]:
    """The tools of a task by name, always less what the caller's role may not call.

    Args:
        agent: whose list counts where a model plans.
        who: the caller.
        rules: whether rules plan, which read with tools of their own.
    """
    listed = _OF_RULES if rules or agent is None else offered(agent, who)
    return {tool.name: tool for tool in listed if who.role in tool.roles}


class TaskCaller:
    """Calls tools for one task.

    Args:
        running: its turn.
        tools: those at hand, by name. The report is saved by `remember`, which stands beside them.
    """

    def __init__(self, running: Running, tools: dict[str, Tool[Any, Any]]) -> None:
        self._running = running
        self._plan = tuple(tools)
        self._table = table_with(tools.values())
        mine = {REMEMBER_TOOL.name: REMEMBER_TOOL} if running.claim.who.role in REMEMBER_TOOL.roles else {}
        self._box = Toolbox({legal(name): tool for name, tool in {**tools, **mine}.items()}, ())

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools of a plan."""
        return self._plan

    async def call(self, step: str, name: str, arguments: dict[str, Any]) -> Outcome:
        """Make one call, or read what it gave. Raises `Waiting` where it needs a person."""
        manner = _Manner(self._running)
        hands = Hands(self._running, self._box, _Gate(self._box, self._running.claim.who), manner, self._table)
        made = await hands.call(step, ToolCall(name=legal(name), arguments=json.dumps(arguments)))
        return Outcome(made.called.ok, made.result.text, manner.answer, made.called.code, (name,))


class _Gate(Gate):
    """A plan has an order and a budget of its own: what is left is that the tool is there and its arguments fit."""

    def admit(self, call: ToolCall) -> Admitted:
        if call.name not in self._box.tools:
            raise NotAdmitted("unknown_tool", f"the tools are: {', '.join(self._box.tools)}")
        try:
            return Admitted(call, self._box.arguments(call.name, call.arguments, self._who))
        except BadArguments as error:
            raise NotAdmitted("bad_arguments", str(error)[:500]) from error


class _Manner:
    """How a task makes one call: all answers but memories are journalled, so that its state can be rebuilt."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.answer: dict[str, Any] | None = None

    def check(self, request: Message) -> None:
        pass

    def phase(self, tool: Tool[Any, Any]) -> str:
        return "task step"

    def journals(self, tool: Tool[Any, Any]) -> bool:
        # Journals hold no text of memories (DESIGN 4.3): whoever takes the task over asks again.
        return tool.risk > Risk.READ or not tool.rpc.subject.startswith("memory.")

    def refused(self, problem: dict[str, Any]) -> bool:
        return bool(problem["status"] < 500)

    async def told(self, made: Made) -> Result:
        if made.answer is None:
            problem = made.problem or {"code": "internal", "detail": ""}
            return note(made.call, problem["code"], problem["detail"])
        self.answer = made.answer.model_dump(mode="json", by_alias=True)
        return Result(made.call, shown(made.answer), "rows")
