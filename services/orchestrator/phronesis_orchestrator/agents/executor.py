"""Every tool call of every agent is made here, behind the one policy gate, with its outcome.

The order of each call: the loop's own order of calls, the policy, a person's approval where it is needed, the intent in the
journal, the call, its outcome. What protects fails closed: a gate that fails refuses.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from phronesis_bus import audit_entry
from phronesis_contracts import Effect, Internal, Kept, Label, Message, OriginKind, Risk, ServiceError, TimedOut, Tool
from phronesis_contracts.approvals import ApprovalStatus, Ruling
from phronesis_contracts.constitution.writes import NodeWrite
from phronesis_contracts.orchestrator import MAX_DETAIL, ToolOutcome

from ..approvals.egress import call_host, may_leave
from ..approvals.policy import (
    TABLE,
    NotAllowed,
    RiskRow,
    RiskTable,
    Verdict,
    Waiting,
    build_table,
    call_arguments,
    describe_call,
    find_row,
    judge,
    missing_approval,
    request_approval,
)
from ..models.reasoner import CallResult, Move, ToolCall
from ..outside_tools.schemas import OutsideArguments
from ..turns.execution import TurnRun, await_store
from .binding import ask_wishes, effect_of, labels_of, outside_label, stated_arguments
from .cognition.state import measure_tool
from .tools import Admitted, Gate, NotAdmitted, Toolbox

_DETAIL = 800
"""Characters of a problem that a model is shown."""
_NAME, _CODE = 200, 100
"""Characters of a name and of a code that the memory is sent."""


@dataclass(frozen=True)
class ExecutedCall:
    """A call that was admitted: what its owner answered, or the problem in place of an answer."""

    call: ToolCall
    request: Message
    answer: Message | None
    problem: dict[str, Any] | None
    """The body of a `ServiceError`."""
    ms: int


@dataclass(frozen=True)
class CallOutcome:
    """What came of a call, as the model is shown it and as it is noted."""

    result: CallResult
    called: ToolOutcome


def problem_result(call: ToolCall, code: str, detail: str) -> CallResult:
    """A problem as the model is shown it."""
    return CallResult(call, json.dumps({"error": code, "detail": detail[:_DETAIL]}), "note")


def executed_outcome(made: ExecutedCall, result: CallResult, tool: str) -> CallOutcome:
    """The outcome of a call that was admitted."""
    return CallOutcome(result, tool_outcome(tool, made.problem, made.ms))


def refused_outcome(call: ToolCall, code: str, detail: str) -> CallOutcome:
    """The outcome of a call that was not admitted."""
    return CallOutcome(problem_result(call, code, detail), tool_outcome(call.name, {"code": code, "detail": detail}, 0))


def tool_outcome(tool: str, problem: Mapping[str, Any] | None, ms: int) -> ToolOutcome:
    """A call as the end of the turn reports it to the memory.

    Args:
        problem: the body of its error; `None` where it worked.
        ms: milliseconds that its owner took; of a call that is known from the journal, those of the time it was made.
    """
    name = tool[:_NAME]
    if problem is None:
        return ToolOutcome(name=name, ok=True, ms=ms)
    code, detail = str(problem["code"])[:_CODE], str(problem.get("detail", ""))[:MAX_DETAIL]
    return ToolOutcome(name=name, ok=False, code=code, detail=detail, ms=ms)


log = logging.getLogger(__name__)


def risk_table(tools: Iterable[Tool[Any, Any]]) -> RiskTable:
    """The risks, with those of the outside tools among `tools` as an administrator set them."""
    rows = (RiskRow(tool.name, tool.risk) for tool in tools if issubclass(tool.rpc.input, OutsideArguments))
    return {**TABLE, **build_table(rows)}


class ExecutorHooks(Protocol):
    """What a loop adds to the one way of making calls."""

    def check(self, request: Message) -> None:
        """Hold a call to rules of the loop's own. Raises `NotAdmitted`."""

    def phase(self, tool: Tool[Any, Any]) -> str:
        """The phase of the turn that a call of this tool belongs to."""

    def journals(self, tool: Tool[Any, Any]) -> bool:
        """Whether the answer of a reading tool is journalled; of one that writes it always is."""

    def refused(self, problem: dict[str, Any]) -> bool:
        """Whether the call was found wrong, so that a changed one may pass; else its owner failed."""

    async def describe(self, made: ExecutedCall) -> CallResult:
        """Note what a call gave, and put it as the model is shown it."""


class ToolExecutor:
    """Makes the tool calls of one turn.

    Args:
        gate: the order and the limits of the loop's calls.
        hooks: what else the loop does with them.
    """

    def __init__(self, running: TurnRun, toolbox: Toolbox, gate: Gate, hooks: ExecutorHooks, table: RiskTable = TABLE) -> None:
        self._running, self._toolbox, self._gate, self._hooks, self._table = running, toolbox, gate, hooks, table

    async def run_round(self, number: int, move: Move) -> tuple[CallResult, ...]:
        """Make the calls of round `number` side by side; one answer for each, in their order. A failure is an answer.

        Raises:
            Waiting: one of them needs a person; the others were made, and are known when the turn goes on.
        """
        plan = [self._admit(call) for call in move.calls]
        read = await self._read_so_far(f"wishes.{number}", [one for one in plan if isinstance(one, Admitted)])
        steps = [self._execute(f"call.{number}.{at}", one, read) for at, one in enumerate(plan, 1) if isinstance(one, Admitted)]
        made = iter(_raise_or_list(await asyncio.gather(*steps, return_exceptions=True)))
        return tuple([(one if isinstance(one, CallOutcome) else await self._settle(one, next(made))).result for one in plan])

    async def call(self, step: str, call: ToolCall, *, ours: bool = False) -> CallOutcome:
        """Make one call; what goes wrong with it is its outcome.

        Args:
            step: name of the journalled step, unique in the turn.
            call: as the model wrote it.
            ours: whether the program makes the call whatever was read, as the report of a task is kept.

        Raises:
            Waiting: it needs a person.
        """
        admitted = self._admit(call)
        if isinstance(admitted, CallOutcome):
            return admitted
        read = () if ours else await self._read_so_far(f"wishes.{step}", [admitted])
        return await self._settle(admitted, await self._execute(step, admitted, read), ours=ours)

    def foresee(self, call: ToolCall) -> Verdict:
        """The ruling on a call as things are now; nothing is done.

        Arguments that are not all known yet are judged as they stand.
        """
        tool = self._toolbox.tools[call.name]
        try:
            return self._judge(tool, self._gate.admit(call).request, self._running.origins.untrusted)
        except NotAdmitted:
            return replace(judge(tool.name, json.loads(call.arguments), self._table), effect=effect_of(tool))

    async def _read_so_far(self, step: str, calls: Sequence[Admitted]) -> tuple[Label, ...]:
        """Where what the calls were decided on comes from that may ask for nothing; the user's own wishes are then known."""
        read = self._running.origins.untrusted
        asked = ((self._toolbox.tools[one.call.name], one.request) for one in calls)
        if acting := [tool for tool, request in asked if self._may_depend(tool, request, read)]:
            await ask_wishes(self._running, acting, step)
        return read

    def _may_depend(self, tool: Tool[Any, Any], request: Message, read: tuple[Label, ...]) -> tuple[Label, ...]:
        """Those of the texts that a call may depend on: none of one that reads inside the tenant.

        What a server that only reads said may go back to it, since it is told nothing that it did not know.
        """
        outside = issubclass(tool.rpc.input, OutsideArguments)
        row = find_row(tool.name, call_arguments(request), self._table)
        if not outside and (row is None or row.risk is Risk.READ):
            return ()
        own = outside_label(tool)
        if outside and tool.risk is Risk.READ and own in read:
            if self._running.origins.returns(tool, stated_arguments(request), own.id):
                return tuple(label for label in read if label != own)
        return read

    def _admit(self, call: ToolCall) -> Admitted | CallOutcome:
        try:
            admitted = self._gate.admit(call)
            self._hooks.check(admitted.request)
        except NotAdmitted as error:
            log.warning("a tool call was not made: %s", error.code)
            return refused_outcome(call, error.code, error.detail)
        return admitted

    async def _settle(self, admitted: Admitted, made: ExecutedCall, *, ours: bool = False) -> CallOutcome:
        refused = made.problem is not None and self._hooks.refused(made.problem)
        self._gate.settle(admitted, refused, failed=made.problem is not None)
        tool = self._toolbox.tools[made.call.name]
        if not ours:
            self._running.origins.read(labels_of(tool, made.answer), made.answer, made.problem)
        outcome = executed_outcome(made, await self._hooks.describe(made), tool.name)
        self._running.tools.append(outcome.called)
        return outcome

    async def _execute(self, step: str, admitted: Admitted, read: tuple[Label, ...]) -> ExecutedCall:
        tool = self._toolbox.tools[admitted.call.name]
        once = _is_once(tool)
        with self._running.phase(self._hooks.phase(tool)), measure_tool(self._running.tracing, tool.name):
            verdict = self._judge(tool, admitted.request, read)
            refusal = await self._refusal(step, verdict, admitted.request)
            if refusal is not None:
                given: dict[str, Any] = {"problem": refusal.body()}
            elif tool.risk > Risk.READ or once or self._hooks.journals(tool):
                call_owner = partial(self._call_owner, step, tool, admitted, verdict)
                changes = verdict.risk > Risk.READ
                given = await self._running.steps.called(step, tool.name, call_owner, again=not once, changes=changes)
            else:
                # Whoever takes the turn over reads again: journals hold no text that may be deleted meanwhile.
                given = await self._call_owner(step, tool, admitted, verdict)
        answer = None if "problem" in given else tool.rpc.output.model_validate(given["answer"])
        return ExecutedCall(admitted.call, admitted.request, answer, given.get("problem"), int(given.get("ms", 0)))

    def _judge(self, tool: Tool[Any, Any], request: Message, read: tuple[Label, ...]) -> Verdict:
        try:
            verdict = judge(tool.name, call_arguments(request), self._table)
            if isinstance(request, NodeWrite) and verdict.ruling is not Ruling.REFUSE:
                breaks = (*request.acknowledge, *(("a rule that blocks",) if request.override is not None else ()))
                verdict = replace(verdict, ruling=Ruling.ASK, breaks=breaks) if breaks else verdict
            return self._bind(tool, request, verdict, read)
        except Exception:
            # Whatever went wrong with the gate, nothing passes it.
            log.exception("the policy gate failed on %s", tool.name)
            return Verdict(Ruling.REFUSE, tool.name, "", Risk.HIGH, irreversible=True)

    def _bind(self, tool: Tool[Any, Any], request: Message, verdict: Verdict, read: tuple[Label, ...]) -> Verdict:
        """Hold a call that has an effect to where the wish for it comes from, and to where it sends what was read."""
        effect, origins, policy = effect_of(tool), self._running.origins, self._running.policy
        if verdict.ruling is Ruling.REFUSE or (verdict.risk is Risk.READ and effect is not Effect.OUTBOUND):
            return verdict
        arguments, because = stated_arguments(request), self._may_depend(tool, request, read)
        verdict = replace(verdict, effect=effect, read=because)
        rulings = {policy.ruling(label.kind, effect) for label in because} - {Ruling.ALLOW}
        if rulings and not (origins.draws(tool, arguments) or origins.chose(tool, arguments)):
            ruling = Ruling.REFUSE if Ruling.REFUSE in rulings else Ruling.ASK
            return replace(verdict, ruling=ruling, because=because)
        if effect is Effect.OUTBOUND and origins.gives_away(arguments) and not may_leave(arguments, origins.said, policy):
            return replace(verdict, ruling=Ruling.ASK, gives_away=call_host(arguments))
        return verdict

    async def _refusal(self, step: str, verdict: Verdict, request: Message) -> ServiceError | None:
        """Why a call is not made; `None` where it may be. Raises `Waiting`."""
        if verdict.ruling is Ruling.ALLOW:
            return None
        if verdict.ruling is Ruling.REFUSE:
            return await self._deny(verdict, request, NotAllowed(verdict.reason))
        seconds = self._running.policy.approval_seconds
        question = request_approval(
            self._running.claim.turn_id, step, verdict, request, effect=verdict.effect, because=verdict.because, seconds=seconds
        )
        approvals = self._running.approvals
        if approvals is None:
            return await self._deny(verdict, request, NotAllowed("nobody can be asked for an approval here"))
        found = await await_store(approvals.answered(self._running.claim, question.approval_id))
        kinds = frozenset(label.kind for label in verdict.because)
        # What was said about the very call counts more than any consent for others.
        of_this = found is not None and found.status is not ApprovalStatus.PENDING and found.digest == question.digest
        if not of_this and question.grantable:
            if await await_store(approvals.granted(self._running.claim, verdict.tool, kinds, question.host)):
                return None
        if found is None or found.status is ApprovalStatus.PENDING:
            raise Waiting(question)
        if found.digest != question.digest:
            return await self._deny(verdict, request, NotAllowed("this is not the call that was approved"))
        if found.status is ApprovalStatus.GRANTED:
            return None
        return await self._deny(verdict, request, missing_approval(found))

    async def _deny(self, verdict: Verdict, request: Message, error: ServiceError) -> ServiceError:
        who = self._running.claim.who
        log.warning(
            "a call was refused: tool=%s action=%s level=%s user=%s code=%s",
            verdict.tool, verdict.action or "-", verdict.risk.name, who.user, error.code,
        )  # fmt: skip
        await self._record(verdict, request, {}, error.code)
        return error

    async def _record(self, verdict: Verdict, request: Message, more: dict[str, Any], code: str | None = None) -> None:
        claim, approvals = self._running.claim, self._running.approvals
        if approvals is None:
            return
        said = describe_call(request, verdict.effect, verdict.read) if verdict.read else {}
        details = {"turn_id": claim.turn_id, "level": verdict.risk.name, "action": verdict.action, **said, **more}
        await await_store(approvals.record(claim, audit_entry(claim.who, f"policy.{verdict.tool}", details, code=code)))

    def _labelled(self, tool: Tool[Any, Any], admitted: Admitted) -> Message:
        """The request of a call; of one that keeps something with where that comes from, whatever the model wrote there."""
        request, origins = admitted.request, self._running.origins
        if not isinstance(request, Kept):
            return request
        own = not origins.untrusted or origins.draws(tool, stated_arguments(request))
        return request.model_copy(update={"labels": (Label(kind=OriginKind.USER),) if own else origins.labels})

    async def _call_owner(self, step: str, tool: Tool[Any, Any], admitted: Admitted, verdict: Verdict) -> dict[str, Any]:
        claim = self._running.claim
        if verdict.recorded:
            await self._record(verdict, admitted.request, {"step": step})
        began = perf_counter()
        key = f"{claim.turn_id}/{step}" if tool.risk > Risk.READ or issubclass(tool.rpc.input, OutsideArguments) else None
        try:
            answer: Message = await self._running.neighbours.ask(claim.who, tool.rpc, self._labelled(tool, admitted), key=key)
            given: dict[str, Any] = {"answer": answer.model_dump(mode="json", by_alias=True)}
        except ServiceError as error:
            log.warning("the tool %s failed: %s", tool.name, error.code)
            if claim.request.task is not None and not _is_once(tool):
                self._running.defer(error)
            given = {"problem": error.body()}
        except asyncio.CancelledError:
            late = {"code": TimedOut.code, "detail": "the call had not ended when the turn was stopped"}
            self._running.tools.append(tool_outcome(tool.name, late, round((perf_counter() - began) * 1000)))
            raise
        except Exception:
            # A tool that breaks is reported to the model like one that answers with an error.
            log.exception("the tool %s broke", tool.name)
            given = {"problem": Internal(f"{tool.name} failed").body()}
        return {**given, "ms": round((perf_counter() - began) * 1000)}


def _is_once(tool: Tool[Any, Any]) -> bool:
    """Whether a call may not be made a second time: it goes to a system that is not ours, and that does not know a repeat."""
    return issubclass(tool.rpc.input, OutsideArguments) and not tool.rpc.input.idempotent


def _raise_or_list(made: Iterable[ExecutedCall | BaseException]) -> list[ExecutedCall]:
    """What was made; raises what ends the attempt, and only where nothing does, what lets the turn wait."""
    listed = list(made)
    errors = [one for one in listed if isinstance(one, BaseException)]
    if errors:
        raise next((one for one in errors if not isinstance(one, Waiting)), errors[0])
    return [one for one in listed if isinstance(one, ExecutedCall)]
