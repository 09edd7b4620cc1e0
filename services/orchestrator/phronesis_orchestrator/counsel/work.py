"""The agents with a language model: it calls the tools of its list, and code holds its answer to the nodes that were seen."""

from __future__ import annotations

import json
import logging
import time

from phronesis_contracts import ServiceError
from phronesis_contracts.constitution.insight import CHECK_POLICY_TOOL
from phronesis_contracts.constitution.session import START_SESSION_TOOL
from phronesis_contracts.faces import legal

from ..cognition.reflection import reflected
from ..drafts import parse_draft
from ..exchanges import fresh_mark
from ..gate import MAX_ROUNDS, MAX_TURN_CALLS
from ..inquiry import Draft, Inquirer, Inquiry, Move, ToolCall
from ..markup import shown
from ..reasoner import Fault, TurnContext
from ..running import Running
from .desk import Desk
from .hands import Hands
from .rules import STAGE, told
from .saying import paragraphs

log = logging.getLogger(__name__)

_ENOUGH = 0.6
"""The share of a turn's time after which the model must answer with what there is."""
_MODE = "counsel"
_LONGEST = 4_000
"""Characters of a message that are held against the rules before the model sees it."""


class Work:
    """The work on one message.

    Args:
        running: the turn.
        reasoner: the model.
        turn: the context package.
        desk: its tools.
    """

    def __init__(self, running: Running, reasoner: Inquirer, turn: TurnContext, desk: Desk) -> None:
        assert turn.agent is not None, "the tools are those of its list"
        self._running = running
        self._reasoner = reasoner
        self._turn = turn
        self._agent = turn.agent
        self._desk = desk
        self._hands = Hands(running, desk, turn.user_text)
        self._inquiry = Inquiry(_MODE, "", self._hands.box.definitions(), fresh_mark(turn))
        self._due = time.monotonic() + _ENOUGH * running.settings.turn_limit

    async def answer(self) -> str | None:
        """The reply with its citations, and with the rules that something goes against; `None` where the model gives none."""
        await self._begun()
        draft = await self._worked()
        if draft is not None:
            draft = await reflected(self._running, self._reasoner, self._turn, draft)
        if draft is not None and (unknown := self._desk.record.unknown(draft.answer)):
            wrong = f"These ids were given by no tool, so they cannot be cited: {', '.join(unknown)}."
            draft = await self._rewritten("answer.cites", Fault(draft.model_dump_json(), wrong)) or draft
        rules = told(self._hands.hits)
        refused = "" if rules else "\n".join(self._hands.refusals)
        if draft is None:
            return paragraphs(rules, refused) or None
        return paragraphs(shown(self._desk.record.kept(draft.answer)), rules, refused)

    async def _begun(self) -> None:
        """What stands before the model's first move: the start of the session, and the rules that the message goes against."""
        text = (self._turn.user_text or self._turn.final_input)[:_LONGEST]
        calls = []
        if "session" in self._agent.stages and self._desk.has(START_SESSION_TOOL):
            calls.append(ToolCall(name=legal(START_SESSION_TOOL.name), arguments="{}"))
        if STAGE in self._agent.stages and self._desk.has(CHECK_POLICY_TOOL) and text.strip():
            calls.append(ToolCall(name=legal(CHECK_POLICY_TOOL.name), arguments=json.dumps({"text": text})))
        if calls:
            move = Move(calls=tuple(calls))
            self._inquiry.rounds.append((move, await self._hands.work(0, move)))

    async def _worked(self) -> Draft | None:
        """Rounds until the model answers; `None` where it gives no usable answer."""
        for number in range(1, MAX_ROUNDS + 1):
            late = time.monotonic() >= self._due
            self._inquiry.closing = number == MAX_ROUNDS or self._hands.gate.made >= MAX_TURN_CALLS or late
            move = await self._move(number)
            if move is None:
                return None
            if not move.calls or self._inquiry.closing:
                return await self._parsed(move.text)
            await self._running.show("tools", names=[call.name for call in move.calls])
            self._inquiry.rounds.append((move, await self._hands.work(number, move)))
        return None

    async def _move(self, number: int) -> Move | None:
        try:
            with self._running.phase("2 think"):
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
