"""Making a model's tool calls: side by side, within the gate, and held to what only a person may do."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from phronesis.contracts import Message, ServiceError
from phronesis.contracts.constitution.insight import CheckPolicy, PolicyChecked, RuleHit
from phronesis.contracts.constitution.writes import GuardrailHit, NodeWrite
from phronesis.contracts.tools import Risk

from ..gate import Admitted, Gate, NotAdmitted
from ..inquiry import Move, Result, ToolCall
from ..outside.offers import OutsideArguments
from ..running import Running
from .box import shown, toolbox
from .desk import Desk
from .rules import broken

log = logging.getLogger(__name__)

_DETAIL = 800
"""Characters of a problem that a model is told."""


class Hands:
    """Makes the tool calls of one turn.

    Args:
        running: the turn.
        desk: its tools.
        said: the person's own words of this message.
    """

    def __init__(self, running: Running, desk: Desk, said: str) -> None:
        self._running = running
        self._desk = desk
        self._said = said.casefold()
        self.box = toolbox(desk.tools)
        self.gate = Gate(self.box, running.claim.who)
        self.hits: list[RuleHit] = []
        """Rules that the message or a write goes against."""
        self.refusals: list[str] = []
        """What was refused by a rule, in the graph's own words."""

    async def work(self, number: int, move: Move) -> tuple[Result, ...]:
        """Make the calls of round `number`; one answer for each, in their order. A call's failure is its answer."""
        plan = [self._admitted(call) for call in move.calls]
        steps = [self._made(f"call.{number}.{at}", one) for at, one in enumerate(plan, 1) if isinstance(one, Admitted)]
        made = await asyncio.gather(*steps, return_exceptions=True)
        if fatal := next((one for one in made if isinstance(one, BaseException)), None):
            raise fatal
        given = iter(one for one in made if isinstance(one, Result))
        return tuple(one if isinstance(one, Result) else next(given) for one in plan)

    def _admitted(self, call: ToolCall) -> Admitted | Result:
        try:
            admitted = self.gate.admit(call)
            self._unspoken(admitted.request)
        except NotAdmitted as error:
            log.warning("a tool call was not made: %s", error.code)
            return _note(call, error.code, error.detail)
        return admitted

    def _unspoken(self, request: Message) -> None:
        """Let nothing be acknowledged that the person did not name in this message."""
        named = request.acknowledge if isinstance(request, NodeWrite) else ()
        if unsaid := [id for id in named if not self._names(id)]:
            raise NotAdmitted(
                "not_acknowledged", f"only the person acknowledges a rule, by naming it; not named: {', '.join(unsaid)}"
            )

    def _names(self, id: str) -> bool:
        seen = self._desk.record.get(id)
        return id.casefold() in self._said or (seen is not None and seen.title.casefold() in self._said)

    async def _made(self, step: str, admitted: Admitted) -> Result:
        tool = self.box.tools[admitted.call.name]
        with self._running.phase("3 counsel"):
            outside = tool.rpc.input if issubclass(tool.rpc.input, OutsideArguments) else None
            if tool.risk is Risk.READ and (outside is None or outside.idempotent):
                # A read is asked again by whoever takes the turn over: journals hold no text that may be deleted meanwhile.
                given = await self._ask(step, admitted)
            else:
                again = outside is None or outside.idempotent
                given = await self._running.steps.called(step, tool.name, lambda: self._ask(step, admitted), again=again)
        return await self._noted(admitted, given)

    async def _ask(self, step: str, admitted: Admitted) -> dict[str, Any]:
        tool, claim = self.box.tools[admitted.call.name], self._running.claim
        writes = tool.risk is not Risk.READ or isinstance(admitted.request, OutsideArguments)
        key = f"{claim.turn_id}/{step}" if writes else None
        try:
            answer: Message = await self._running.neighbours.ask(claim.who, tool.rpc, admitted.request, key=key)
        except ServiceError as error:
            log.warning("the tool %s failed: %s", tool.name, error.code)
            return {"problem": error.body()}
        return {"answer": answer.model_dump(mode="json", by_alias=True)}

    async def _noted(self, admitted: Admitted, given: dict[str, Any]) -> Result:
        """Note what a call gave, and put it as the model is told it."""
        call, problem = admitted.call, given.get("problem")
        tool = self.box.tools[call.name]
        refused = problem is not None and problem["status"] < 500
        self.gate.settle(admitted, refused, failed=problem is not None)
        if problem is not None:
            if not refused:
                self._running.degrade(tool.rpc.subject.partition(".")[0])
            if problem["code"] == GuardrailHit.code:
                await self._refused(tool.name, admitted.request, problem["detail"])
            return _note(call, problem["code"], problem["detail"])
        answer = tool.rpc.output.model_validate(given["answer"])
        self._desk.record.note(answer)
        if isinstance(answer, PolicyChecked) and isinstance(admitted.request, CheckPolicy):
            self.hits.extend(answer.hits)
        return Result(call, shown(answer), "memories" if call.name == "session_start_v1" else "rows")

    async def _refused(self, name: str, request: Message, detail: str) -> None:
        """A write that a rule refused: which rule it is, for the reply to cite it."""
        self.refusals.append(detail)
        fields = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"acknowledge", "id", "request_id"})
        text = " ".join(str(value) for value in fields.values() if isinstance(value, str))
        kind = name.partition(".")[0] if name.endswith((".create.v1", ".update.v1")) and not name.startswith("node.") else None
        self.hits.extend(await broken(self._running, self._desk, text, kind, fields))


def _note(call: ToolCall, code: str, detail: str) -> Result:
    return Result(call, json.dumps({"error": code, "detail": detail[:_DETAIL]}), "note")
