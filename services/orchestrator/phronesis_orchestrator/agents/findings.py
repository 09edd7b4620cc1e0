"""What an inquiry of noor and maestro has found so far, and how their tool calls are made and rendered."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts import BadRequest, Forbidden, Message, NotFound, ServiceError, Tool, without_labels
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL, MemoryFound
from phronesis_contracts.facts import RECALL_FACTS_TOOL, RecalledFacts
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, InstructionText
from phronesis_contracts.memory import KEEP_MEMORY_TOOL, RECALL_MEMORY_TOOL, RECALL_TOOL, Recalled, RecalledMemories
from phronesis_contracts.twin import READ_CYPHER_TOOL, CypherRows, ReadCypher
from phronesis_tokens import clean, count, cut

from ..models.reasoner import CallResult
from ..outside_tools.schemas import OutsideResult
from ..turns.execution import TurnRun
from .executor import ExecutedCall, ToolExecutor, problem_result, risk_table
from .tools import Gate, Toolbox

CHAIN_TAG = "business_chain_"
"""Beginning of the tags of elements that hold a chain."""


@dataclass(frozen=True)
class TwinRead:
    """One question to the twin that was answered."""

    statement: str
    parameters: dict[str, Any]
    rows: tuple[dict[str, Any], ...]
    truncated: bool


@dataclass
class Findings:
    """Everything that an answer may rest on."""

    reads: list[TwinRead] = field(default_factory=list)
    unanswered: int = 0
    """Questions to the twin that were refused or failed since the last one that was answered."""
    memories: list[tuple[str, int]] = field(default_factory=list)
    """Scopes that were asked, with how many snippets each gave."""
    tags: list[str] = field(default_factory=list)
    """Instructions that were loaded."""
    missing_tags: list[str] = field(default_factory=list)
    instruction_tokens: int = 0

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """All rows, in the order read."""
        return tuple(row for read in self.reads for row in read.rows)

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains whose instructions were loaded."""
        return tuple(tag.removeprefix(CHAIN_TAG) for tag in self.tags if tag.startswith(CHAIN_TAG))

    @property
    def executed(self) -> str | None:
        """What was read with, joined with `;`; `None` where nothing was."""
        return "; ".join(read.statement.strip().rstrip(";") for read in self.reads) or None

    def read(self, request: ReadCypher, answer: CypherRows) -> None:
        """Note an answered question."""
        self.reads.append(TwinRead(request.cypher_query, request.parameters, answer.rows, answer.truncated))
        self.unanswered = 0

    def recalled(self, answer: RecalledMemories) -> None:
        """Note what memory gave."""
        self.memories.append((answer.scope.value, len(answer.snippets)))

    def loaded(self, answer: InstructionText) -> None:
        """Note which instructions came."""
        self.tags.extend(answer.tags)
        self.missing_tags.extend(answer.missing)
        self.instruction_tokens += answer.tokens

    def account(self) -> str:
        """How the answer came about, from the record and not from the model."""
        scopes = ", ".join(f"{scope} ({count})" for scope, count in self.memories) or "none"
        parts = [f"Memory asked: {scopes}.", f"Instructions loaded: {', '.join(self.tags) or 'none'}."]
        if self.missing_tags:
            parts.append(f"Not there: {', '.join(self.missing_tags)}.")
        parts.append(f"Reads: {len(self.reads)}, rows: {len(self.rows)}.")
        if self.unanswered:
            parts.append(f"Reads that failed and were not repaired: {self.unanswered}.")
        return " ".join(parts)


_OF_A_FACT = {"text", "confidence", "valid_from", "valid_to"}
"""What a model is told of a fact."""
_ROOM = {"instructions": 7_000, "rows": 3_000, "memories": 1_500, "note": 400}
"""Tokens of one answer by its kind. A bundle of a mode has about 4500."""


def render_result(answer: Message) -> tuple[str, str]:
    """The kind of an answer, and its text."""
    match answer:
        case InstructionText():
            missing = f"\n\nNot there: {', '.join(answer.missing)}." if answer.missing else ""
            return "instructions", cut(clean(answer.text + missing), _ROOM["instructions"])
        case RecalledMemories():
            found = [snippet.model_dump(include={"content", "key", "confidence", "score"}) for snippet in answer.snippets]
            return "memories", _array(found, _ROOM["memories"])
        case MemoryFound():
            hits = [hit.model_dump(mode="json", exclude_none=True, exclude={"labels"}) for hit in answer.results]
            failed = [{"error": answer.error}] if answer.error else []
            return "memories", _array([*failed, *hits], _ROOM["memories"])
        case Recalled():
            items = [item.model_dump(mode="json", include={"title", "text", "score"}) for item in answer.items]
            return "memories", _array(items, _ROOM["memories"])
        case RecalledFacts():
            facts = [one.fact.model_dump(mode="json", include=_OF_A_FACT, exclude_none=True) for one in answer.facts]
            return "memories", _array(facts, _ROOM["memories"])
        case OutsideResult():
            return "rows", cut(clean(answer.text), _ROOM["rows"])
        case CypherRows():
            notes = [{"warning": warning} for warning in answer.warnings]
            more = [{"note": "there are more rows than these"}] if answer.truncated else []
            return "rows", _array([*answer.rows, *more, *notes], _ROOM["rows"])
    shown = without_labels(answer.model_dump(mode="json", by_alias=False))
    return "note", cut(clean(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))), _ROOM["note"])


def _array(items: Iterable[object], room: int) -> str:
    """A JSON array of as many items as there is room for; the last one says how many were left out."""
    lines = [clean(json.dumps(item, ensure_ascii=False, default=str)) for item in items]
    kept: list[str] = []
    left = room
    for line in lines:
        left -= count(line, room) + 2
        if left < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept.append(json.dumps({"left_out": len(lines) - len(kept)}))
    return f"[{', '.join(kept)}]"


_PHASES = {
    RECALL_MEMORY_TOOL.name: "0 remember",
    RETRIEVE_INSTRUCTIONS_TOOL.name: "2 recollect",
    READ_CYPHER_TOOL.name: "3 recall",
    MEMORY_QUERY_TOOL.name: "0 remember",
    KEEP_MEMORY_TOOL.name: "5 keep",
    RECALL_TOOL.name: "0 remember",
    RECALL_FACTS_TOOL.name: "0 remember",
}
"""The step of the control loop that each tool belongs to."""
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


def build_executor(running: TurnRun, box: Toolbox, gate: Gate, findings: Findings) -> ToolExecutor:
    """The hands of one turn. `gate`: what may be called, and when. `findings`: where what they give is noted."""
    return ToolExecutor(running, box, gate, _AnalystHooks(running, findings), risk_table(box.tools.values()))


class _AnalystHooks:
    def __init__(self, running: TurnRun, findings: Findings) -> None:
        self._running = running
        self._findings = findings

    def check(self, request: Message) -> None:
        """Nothing more than the gate's own order."""

    def phase(self, tool: Tool[Any, Any]) -> str:
        return _PHASES.get(tool.name, "3 recall")

    def journals(self, tool: Tool[Any, Any]) -> bool:
        # Journals hold no text of memories: it is a read, and whoever takes the turn over asks again.
        return tool.name not in _UNKEPT

    def refused(self, problem: dict[str, Any]) -> bool:
        return isinstance(ServiceError.from_body(problem), BadRequest | Forbidden | NotFound)

    async def describe(self, made: ExecutedCall) -> CallResult:
        if made.problem is not None:
            return self._failed(made, made.problem)
        assert made.answer is not None
        self._remember(made.request, made.answer)
        kind, text = render_result(made.answer)
        return CallResult(made.call, text, kind)

    def _failed(self, made: ExecutedCall, problem: dict[str, Any]) -> CallResult:
        name = made.call.name
        if name == READ_CYPHER_TOOL.name:
            self._findings.unanswered += 1
        if not self.refused(problem):
            self._running.degrade(_PARTS.get(name, name))
            if name == RECALL_MEMORY_TOOL.name:
                return CallResult(made.call, "[]", "memories")
        return problem_result(made.call, problem["code"], problem["detail"])

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
