"""The hands of the constitutional agents: a model's calls within the gate, and held to what only a person may do."""

from __future__ import annotations

from typing import Any

from phronesis_contracts import Message, Tool
from phronesis_contracts.constitution.insight import CheckPolicy, PolicyChecked, RuleHit
from phronesis_contracts.constitution.writes import GuardrailHit, NodeWrite
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL, MemoryFound

from ..gate import Gate, NotAdmitted
from ..inquiry import Result
from ..policy.hands import Hands as OneHands
from ..policy.hands import table_with
from ..policy.outcomes import Made, note
from ..policy.rules import named
from ..running import Running
from .box import shown, toolbox
from .desk import Desk
from .rules import broken

_PHASE = "3 counsel"
_MEMORIES = frozenset({"session_start_v1", MEMORY_QUERY_TOOL.name})
"""Tools, as the model names them, whose answers are memories."""


class Hands(OneHands):
    """Makes the tool calls of one turn.

    Args:
        running: the turn.
        desk: its tools.
        said: the person's own words of this message.
    """

    def __init__(self, running: Running, desk: Desk, said: str) -> None:
        self.box = toolbox({**desk.tools, MEMORY_QUERY_TOOL.name: MEMORY_QUERY_TOOL})
        self.gate = Gate(self.box, running.claim.who)
        self._care = _Care(running, desk, said, self.box.tools)
        super().__init__(running, self.box, self.gate, self._care, table_with(desk.tools.values()))

    @property
    def hits(self) -> list[RuleHit]:
        """Rules that the message or a write goes against."""
        return self._care.hits

    @property
    def refusals(self) -> list[str]:
        """What was refused by a rule, in the graph's own words."""
        return self._care.refusals


class _Care:
    def __init__(self, running: Running, desk: Desk, said: str, tools: Any) -> None:
        self._running = running
        self._desk = desk
        self._said = said
        self._tools = tools
        self.hits: list[RuleHit] = []
        self.refusals: list[str] = []

    def check(self, request: Message) -> None:
        """Let nothing be acknowledged that the person did not name in this message."""
        acknowledged = request.acknowledge if isinstance(request, NodeWrite) else ()
        if unsaid := [id for id in acknowledged if not self._named(id)]:
            raise NotAdmitted(
                "not_acknowledged", f"only the person acknowledges a rule, by naming it; not named: {', '.join(unsaid)}"
            )

    def _named(self, id: str) -> bool:
        seen = self._desk.record.get(id)
        return named(self._said, (id, seen.title) if seen is not None else (id,))

    def phase(self, tool: Tool[Any, Any]) -> str:
        return _PHASE

    def journals(self, tool: Tool[Any, Any]) -> bool:
        return False

    def refused(self, problem: dict[str, Any]) -> bool:
        return bool(problem["status"] < 500)

    async def told(self, made: Made) -> Result:
        tool = self._tools[made.call.name]
        if made.problem is not None:
            if not self.refused(made.problem):
                self._running.degrade(tool.rpc.subject.partition(".")[0])
            if made.problem["code"] == GuardrailHit.code:
                await self._stopped(tool.name, made.request, made.problem["detail"])
            return note(made.call, made.problem["code"], made.problem["detail"])
        assert made.answer is not None
        self._desk.record.note(made.answer)
        if isinstance(made.answer, PolicyChecked) and isinstance(made.request, CheckPolicy):
            self.hits.extend(made.answer.hits)
        if isinstance(made.answer, MemoryFound) and made.answer.error:
            self._running.degrade("memory")
        return Result(made.call, shown(made.answer), "memories" if made.call.name in _MEMORIES else "rows")

    async def _stopped(self, name: str, request: Message, detail: str) -> None:
        """A write that a rule refused: which rule it is, for the reply to cite it."""
        self.refusals.append(detail)
        fields = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"acknowledge", "id", "request_id"})
        text = " ".join(str(value) for value in fields.values() if isinstance(value, str))
        kind = name.partition(".")[0] if name.endswith((".create.v1", ".update.v1")) and not name.startswith("node.") else None
        self.hits.extend(await broken(self._running, self._desk, text, kind, fields))
