"""The hands of noor and maestro: what they add to the one way of making calls, and what they note of the answers."""

from __future__ import annotations

from typing import Any

from phronesis_contracts import BadRequest, Forbidden, Message, NotFound, ServiceError, Tool
from phronesis_contracts.cypher import READ_CYPHER_TOOL, CypherRows, ReadCypher
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL, MemoryFound
from phronesis_contracts.facts import RECALL_FACTS_TOOL, RecalledFacts
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, InstructionText
from phronesis_contracts.memory import RECALL_TOOL, Recalled
from phronesis_contracts.scoped_memory import KEEP_MEMORY_TOOL, RECALL_MEMORY_TOOL, RecalledMemories

from .findings import Findings
from .gate import Gate
from .inquiry import Result
from .policy.hands import Hands, table_with
from .policy.outcomes import Made, note
from .running import Running
from .tellings import told
from .toolbox import Toolbox

_PHASES = {
    RECALL_MEMORY_TOOL.name: "0 remember",
    RETRIEVE_INSTRUCTIONS_TOOL.name: "2 recollect",
    READ_CYPHER_TOOL.name: "3 recall",
    MEMORY_QUERY_TOOL.name: "0 remember",
    KEEP_MEMORY_TOOL.name: "5 keep",
    RECALL_TOOL.name: "0 remember",
    RECALL_FACTS_TOOL.name: "0 remember",
}
"""The step of the control loop that each tool belongs to (NC-003)."""
_PARTS = {
    RECALL_MEMORY_TOOL.name: "memory",
    RETRIEVE_INSTRUCTIONS_TOOL.name: "instructions",
    READ_CYPHER_TOOL.name: "graph",
    MEMORY_QUERY_TOOL.name: "memory",
    KEEP_MEMORY_TOOL.name: "memory",
    RECALL_TOOL.name: "memory",
    RECALL_FACTS_TOOL.name: "memory",
}
"""What a reply lacks where a tool's owner is away."""
_UNKEPT = frozenset({RECALL_MEMORY_TOOL.name, MEMORY_QUERY_TOOL.name, RECALL_TOOL.name, RECALL_FACTS_TOOL.name})
"""Tools whose answers are texts of memories."""


def hands(running: Running, box: Toolbox, gate: Gate, findings: Findings) -> Hands:
    """The hands of one turn.

    Args:
        running: the turn.
        box: the tools offered.
        gate: what may be called, and when.
        findings: where what they give is noted.
    """
    return Hands(running, box, gate, _Manner(running, findings), table_with(box.tools.values()))


class _Manner:
    def __init__(self, running: Running, findings: Findings) -> None:
        self._running = running
        self._findings = findings

    def check(self, request: Message) -> None:
        """Nothing more than the gate's own order."""

    def phase(self, tool: Tool[Any, Any]) -> str:
        return _PHASES.get(tool.name, "3 recall")

    def journals(self, tool: Tool[Any, Any]) -> bool:
        # Journals hold no text of memories (DESIGN 4.3): it is a read, and whoever takes the turn over asks again.
        return tool.name not in _UNKEPT

    def refused(self, problem: dict[str, Any]) -> bool:
        return isinstance(ServiceError.from_body(problem), BadRequest | Forbidden | NotFound)

    async def told(self, made: Made) -> Result:
        if made.problem is not None:
            return self._failed(made, made.problem)
        assert made.answer is not None
        self._remember(made.request, made.answer)
        kind, text = told(made.answer)
        return Result(made.call, text, kind)

    def _failed(self, made: Made, problem: dict[str, Any]) -> Result:
        name = made.call.name
        if name == READ_CYPHER_TOOL.name:
            self._findings.unanswered += 1
        if not self.refused(problem):
            self._running.degrade(_PARTS.get(name, name))
            if name == RECALL_MEMORY_TOOL.name:
                return Result(made.call, "[]", "memories")  # N-100, N-101
        return note(made.call, problem["code"], problem["detail"])

    def _remember(self, request: Message, answer: Message) -> None:
        match answer:
            case CypherRows() if isinstance(request, ReadCypher):
                self._findings.read(request, answer)
            case RecalledMemories():
                self._findings.recalled(answer)
                for part in answer.degraded:
                    self._running.degrade(part)
            case Recalled() | RecalledFacts():
                for part in answer.degraded:
                    self._running.degrade(part)
            case MemoryFound() if answer.error:
                self._running.degrade("memory")
            case InstructionText():
                self._findings.loaded(answer)
