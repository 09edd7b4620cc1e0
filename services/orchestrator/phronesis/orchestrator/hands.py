"""Making the tool calls of one round: side by side, each a journalled step, each with an answer for the model."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from phronesis.contracts import BadRequest, Forbidden, Message, NotFound, ServiceError
from phronesis.contracts.cypher import READ_CYPHER_TOOL, CypherRows, ReadCypher
from phronesis.contracts.episodes import MEMORY_QUERY_TOOL, MemoryFound
from phronesis.contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, InstructionText
from phronesis.contracts.scoped_memory import KEEP_MEMORY_TOOL, RECALL_MEMORY_TOOL, RecalledMemories
from phronesis.contracts.tools import Risk

from .findings import Findings
from .gate import Admitted, Gate, NotAdmitted
from .inquiry import Move, Result, ToolCall
from .outcomes import watched
from .running import Running
from .tellings import told
from .toolbox import Toolbox

log = logging.getLogger(__name__)

_PHASES = {
    RECALL_MEMORY_TOOL.name: "0 remember",
    RETRIEVE_INSTRUCTIONS_TOOL.name: "2 recollect",
    READ_CYPHER_TOOL.name: "3 recall",
    MEMORY_QUERY_TOOL.name: "0 remember",
    KEEP_MEMORY_TOOL.name: "5 keep",
}
"""The step of the control loop that each tool belongs to (NC-003)."""
_PARTS = {
    RECALL_MEMORY_TOOL.name: "memory",
    RETRIEVE_INSTRUCTIONS_TOOL.name: "instructions",
    READ_CYPHER_TOOL.name: "graph",
    MEMORY_QUERY_TOOL.name: "memory",
    KEEP_MEMORY_TOOL.name: "memory",
}
"""What a reply lacks where a tool's owner is away."""
_UNKEPT = frozenset({RECALL_MEMORY_TOOL.name, MEMORY_QUERY_TOOL.name})
"""Tools whose answers are texts of memories."""


class Hands:
    """Makes tool calls for one turn.

    Args:
        running: the turn.
        box: the tools offered.
        gate: what may be called, and when.
        findings: where what they give is noted.
    """

    def __init__(self, running: Running, box: Toolbox, gate: Gate, findings: Findings) -> None:
        self._running = running
        self._box = box
        self._gate = gate
        self._findings = findings

    async def work(self, number: int, move: Move) -> tuple[Result, ...]:
        """Make the calls of round `number`; one answer for each, in their order. A call's failure is its answer (N-052)."""
        plan = [self._admitted(call) for call in move.calls]
        made = await asyncio.gather(
            *(self._made(f"call.{number}.{at}", one) for at, one in enumerate(plan, 1) if isinstance(one, Admitted)),
            return_exceptions=True,
        )
        if fatal := next((one for one in made if isinstance(one, BaseException)), None):
            raise fatal
        given = iter(one for one in made if isinstance(one, dict))
        return tuple(one if isinstance(one, Result) else self._noted(one, next(given)) for one in plan)

    def _admitted(self, call: ToolCall) -> Admitted | Result:
        try:
            return self._gate.admit(call)
        except NotAdmitted as error:
            log.warning("a tool call was not made: %s", error.code)
            return Result(call, json.dumps({"error": error.code, "detail": error.detail}), "note")

    async def _made(self, step: str, admitted: Admitted) -> dict[str, Any]:
        name = admitted.call.name
        with self._running.phase(_PHASES[name]):
            if name in _UNKEPT:
                # Journals hold no text of memories (DESIGN 4.3): it is a read, and whoever takes the turn over asks again.
                return await watched(self._running, name, self._ask(step, admitted))
            call = self._running.steps.called(step, name, lambda: self._ask(step, admitted))
            return await watched(self._running, name, call)

    async def _ask(self, step: str, admitted: Admitted) -> dict[str, Any]:
        tool, claim = self._box.tools[admitted.call.name], self._running.claim
        key = f"{claim.turn_id}/{step}" if tool.risk > Risk.READ else None
        try:
            answer: Message = await self._running.neighbours.ask(claim.who, tool.rpc, admitted.request, key=key)
        except ServiceError as error:
            log.warning("the tool %s failed: %s", tool.name, error.code)
            return {"problem": error.body(), "refused": isinstance(error, BadRequest | Forbidden | NotFound)}
        return {"answer": answer.model_dump(mode="json")}

    def _noted(self, admitted: Admitted, given: dict[str, Any]) -> Result:
        """Note what a call gave, and put it as the model is told it."""
        name, problem = admitted.call.name, given.get("problem")
        refused = bool(given.get("refused"))
        self._gate.settle(admitted, refused, failed=problem is not None)
        if problem is not None:
            if name == READ_CYPHER_TOOL.name:
                self._findings.unanswered += 1
            if not refused:
                self._running.degrade(_PARTS[name])
                if name == RECALL_MEMORY_TOOL.name:
                    return Result(admitted.call, "[]", "memories")  # N-100, N-101
            return Result(admitted.call, json.dumps({"error": problem["code"], "detail": problem["detail"][:800]}), "note")
        answer = self._box.tools[name].rpc.output.model_validate(given["answer"])
        self._remember(admitted.request, answer)
        kind, text = told(answer)
        return Result(admitted.call, text, kind)

    def _remember(self, request: Message, answer: Message) -> None:
        match answer:
            case CypherRows() if isinstance(request, ReadCypher):
                self._findings.read(request, answer)
            case RecalledMemories():
                self._findings.recalled(answer)
                for part in answer.degraded:
                    self._running.degrade(part)
            case MemoryFound() if answer.error:
                self._running.degrade("memory")
            case InstructionText():
                self._findings.loaded(answer)
