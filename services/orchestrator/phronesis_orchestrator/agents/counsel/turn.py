"""One turn of an agent that has an allow-list: with a language model where there is one, else by rules."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from phronesis_contracts import Message, ModelUnavailable, Risk, ServiceError, Tool
from phronesis_contracts.constitution.insight import CHECK_POLICY_TOOL, CheckPolicy, PolicyChecked, RuleHit
from phronesis_contracts.constitution.lists import LIST_FOUNDATION_TOOL, ListFoundation
from phronesis_contracts.constitution.session import START_SESSION_TOOL, SessionStarted
from phronesis_contracts.constitution.writes import GuardrailHit
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL, MemoryFound
from phronesis_contracts.tools import legal_name

from ...models.parsing import parse_draft
from ...models.prompts import new_mark
from ...models.reasoner import CallResult, Draft, Fault, Inquirer, Inquiry, Move, Reasoner, ToolCall, TurnContext
from ...turns.execution import TurnRun
from ..cognition.preparation import decide_intent, prepare_plan, reflect_on_draft
from ..executor import ExecutedCall, problem_result, risk_table
from ..executor import ToolExecutor as OneHands
from ..presentation import sanitize_answer
from ..tools import MAX_ROUNDS, Gate, max_calls, may_use
from .questions import answer_by_rules
from .tools import (
    STAGE,
    NotOffered,
    SeenNodes,
    TurnTools,
    build_counsel_toolbox,
    describe_hits,
    find_broken_rules,
    paragraphs,
    render_answer,
)

_PHASE = "3 counsel"
_HEAVY = ("metadata", "embedding", "provenance")
"""Fields of the foundation that no prompt holds."""
_MEMORIES = frozenset({"session_start_v1", MEMORY_QUERY_TOOL.name})
"""Tools, as the model names them, whose answers are memories."""


class CounselToolExecutor(OneHands):
    """Makes the tool calls of one turn."""

    def __init__(self, running: TurnRun, desk: TurnTools) -> None:
        more = {MEMORY_QUERY_TOOL.name: MEMORY_QUERY_TOOL} if may_use(desk.agent, MEMORY_QUERY_TOOL) else {}
        self.box = build_counsel_toolbox({**desk.tools, **more})
        self.gate = Gate(self.box, running.claim.who, max_calls(desk.agent))
        self._care = _CounselHooks(running, desk, self.box.tools)
        super().__init__(running, self.box, self.gate, self._care, risk_table(desk.tools.values()))

    @property
    def hits(self) -> list[RuleHit]:
        """Rules that the message or a write goes against."""
        return self._care.hits

    @property
    def refusals(self) -> list[str]:
        """What was refused by a rule, in the graph's own words."""
        return self._care.refusals

    @property
    def stopped(self) -> bool:
        """Whether rules kept the turn from writing anything at all."""
        return bool(self._care.refusals) and not self._care.written


class _CounselHooks:
    def __init__(self, running: TurnRun, desk: TurnTools, tools: Any) -> None:
        self._running, self._desk, self._tools = running, desk, tools
        self.hits: list[RuleHit] = []
        self.refusals: list[str] = []
        self.written = False

    def check(self, request: Message) -> None:
        """Nothing: what breaks a rule needs a person's approval, which the executor asks for."""

    def phase(self, tool: Tool[Any, Any]) -> str:
        return _PHASE

    def journals(self, tool: Tool[Any, Any]) -> bool:
        return False

    def refused(self, problem: dict[str, Any]) -> bool:
        return bool(problem["status"] < 500)

    async def describe(self, made: ExecutedCall) -> CallResult:
        tool = self._tools[made.call.name]
        if made.problem is not None:
            if not self.refused(made.problem):
                self._running.degrade(tool.rpc.subject.partition(".")[0])
            if made.problem["code"] == GuardrailHit.code:
                await self._stopped(tool.name, made.request, made.problem["detail"])
            return problem_result(made.call, made.problem["code"], made.problem["detail"])
        assert made.answer is not None
        self.written = self.written or tool.risk > Risk.READ
        self._desk.record.note(made.answer)
        if isinstance(made.answer, PolicyChecked) and isinstance(made.request, CheckPolicy):
            self.hits.extend(made.answer.hits)
        if isinstance(made.answer, MemoryFound) and made.answer.error:
            self._running.degrade("memory")
        told = await self._with_rules(made.answer) if isinstance(made.answer, SessionStarted) else made.answer
        return CallResult(made.call, render_answer(told), "memories" if made.call.name in _MEMORIES else "rows")

    async def _with_rules(self, started: SessionStarted) -> SessionStarted:
        """The start of a session with what its foundation says: the session leaves typed properties out."""
        try:
            found = await self._desk.ask(LIST_FOUNDATION_TOOL, ListFoundation(exclude_fields=_HEAVY))
        except (NotOffered, ServiceError) as error:
            log.warning("the foundation's statements could not be read: %s", error)
            return started
        whole = {node.id: node for node in found.items}
        return started.model_copy(update={"foundation": tuple(whole.get(node.id, node) for node in started.foundation)})

    async def _stopped(self, name: str, request: Message, detail: str) -> None:
        self.refusals.append(detail)
        fields = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"acknowledge", "id", "request_id"})
        text = " ".join(str(value) for value in fields.values() if isinstance(value, str))
        kind = name.partition(".")[0] if name.endswith((".create.v1", ".update.v1")) and not name.startswith("node.") else None
        self.hits.extend(await find_broken_rules(self._running, self._desk, text, kind, fields))


log = logging.getLogger(__name__)

_ENOUGH = 0.6
"""The share of a turn's time after which the model must answer with what there is."""
_MODE = "counsel"
NOTHING_WRITTEN = "Nothing was written."
_LONGEST = 4_000
"""Characters of a message that are held against the rules before the model sees it."""


class CounselWork:
    """The work on one message."""

    def __init__(self, running: TurnRun, reasoner: Inquirer, turn: TurnContext, desk: TurnTools) -> None:
        assert turn.agent is not None, "the tools are those of its list"
        self._running, self._reasoner, self._turn = running, reasoner, turn
        self._agent = turn.agent
        self._desk = desk
        self._hands = CounselToolExecutor(running, desk)
        self._inquiry = Inquiry(_MODE, "", self._hands.box.definitions(), new_mark(turn))
        self._due = time.monotonic() + _ENOUGH * running.seconds

    async def answer(self) -> str | None:
        """The reply with its citations, and with the rules that something goes against; `None` where the model gives none."""
        await self._begun()
        draft = await self._worked()
        if draft is not None:
            draft = await reflect_on_draft(self._running, self._reasoner, self._turn, draft)
        if draft is not None and (unknown := self._desk.record.unknown(draft.answer)):
            wrong = f"These ids were given by no tool, so they cannot be cited: {', '.join(unknown)}."
            draft = await self._rewritten("answer.cites", Fault(draft.model_dump_json(), wrong)) or draft
        rules = describe_hits(self._hands.hits)
        refused = "" if rules else "\n".join(self._hands.refusals)
        if self._hands.stopped:  # whatever the model says of it: it may say that it is done
            return paragraphs(NOTHING_WRITTEN, rules, refused)
        if draft is None:
            return paragraphs(rules, refused) or None
        return paragraphs(sanitize_answer(self._desk.record.kept(draft.answer)), rules, refused)

    @property
    def wrote(self) -> bool:
        """Whether a tool was called that does more than read."""
        risks = {legal_name(name): tool.risk for name, tool in self._desk.tools.items()}
        called = {call.name for move, _ in self._inquiry.rounds for call in move.calls}
        return any(risks.get(name, Risk.READ) > Risk.READ for name in called)

    async def _begun(self) -> None:
        text = (self._turn.user_text or self._turn.final_input)[:_LONGEST]
        calls = []
        if "session" in self._agent.stages and self._desk.has(START_SESSION_TOOL):
            calls.append(ToolCall(name=legal_name(START_SESSION_TOOL.name), arguments="{}"))
        if STAGE in self._agent.stages and self._desk.has(CHECK_POLICY_TOOL) and text.strip():
            calls.append(ToolCall(name=legal_name(CHECK_POLICY_TOOL.name), arguments=json.dumps({"text": text})))
        if calls:
            move = Move(calls=tuple(calls))
            self._inquiry.rounds.append((move, await self._hands.run_round(0, move)))

    async def _worked(self) -> Draft | None:
        for number in range(1, MAX_ROUNDS + 1):
            late = time.monotonic() >= self._due
            self._inquiry.closing = number == MAX_ROUNDS or self._hands.gate.full or late
            move = await self._move(number)
            if move is None:
                return None
            if not move.calls or self._inquiry.closing:
                return await self._parsed(move.text)
            await self._running.show("tools", names=[call.name for call in move.calls])
            self._inquiry.rounds.append((move, await self._hands.run_round(number, move)))
        return None

    async def _move(self, number: int) -> Move | None:
        try:
            with self._running.phase("2 think"), self._running.live(self._agent):
                answer = await self._running.steps.made(
                    f"round.{number}", Move, lambda: self._reasoner.proceed(self._turn, self._inquiry)
                )
        except ServiceError as error:
            if number == 1:
                raise
            log.warning("the model failed after the graph was read: %s", error.code)
            return None
        return answer.value

    async def _parsed(self, said: str) -> Draft | None:
        found = parse_draft(said)
        if isinstance(found, Draft):
            return found
        log.warning("the answer is no good: %s", found.wrong)
        return await self._rewritten("answer.repair", found)

    async def _rewritten(self, name: str, fault: Fault) -> Draft | None:
        try:
            answer = await self._running.steps.made(
                name, Draft, lambda: self._reasoner.rewrite(self._turn, self._inquiry, fault)
            )
        except ServiceError as error:
            log.warning("the answer could not be written again: %s", error.code)
            return None
        return answer.value


_APOLOGY = "I am sorry, I could not put an answer together. Please ask again."
_NO_TOOLS = "Your role may use none of this agent's tools, so it can look nothing up for you."


async def counsel(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> tuple[str, SeenNodes]:
    """The reply, and the nodes that were seen for it.

    Raises:
        ModelUnavailable: the model failed, and nothing was changed yet.
        ServiceError: what else the answer cannot do without failed.
    """
    agent = turn.agent
    assert agent is not None, "the tools are those of its list"
    desk = TurnTools(running, agent)
    await desk.reach_outside()
    if not desk.tools:
        return _NO_TOOLS, desk.record
    turn = await decide_intent(running, reasoner, turn)
    if not isinstance(reasoner, Inquirer):
        return await answer_by_rules(running, turn, desk), desk.record
    turn = await prepare_plan(running, reasoner, turn, tuple(desk.tools.values()))
    work = CounselWork(running, reasoner, turn, desk)
    answer = await work.answer()
    if answer is None:
        if not work.wrote:
            raise ModelUnavailable("the language model gave no usable answer, and changed nothing")
        running.degrade("final")
        answer = agent.phrases.get("apology") or _APOLOGY
    return answer, desk.record
