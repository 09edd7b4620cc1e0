"""The control loop of noor and maestro: classify, then remember, plan, recollect, recall, reconcile and return (seed 000).

The model decides which tool it calls when; `gate` keeps the order and the limits. Code and not the model says what was
read, what is missing, which figures stand, and how sure the answer is.
"""

from __future__ import annotations

import logging
import time

from opentelemetry.trace import get_current_span

from phronesis_contracts import ServiceError
from phronesis_contracts.analysis import Analysis

from ..analyst import analyse
from ..cognition.thinking import as_said, prepared
from ..counsel import counsel
from ..counsel.desk import Desk
from ..drafts import parse_draft
from ..exchanges import fresh_mark
from ..findings import Findings
from ..gate import MAX_ROUNDS, MAX_TURN_CALLS, Gate
from ..hands import hands
from ..inquiry import Classified, Draft, Inquirer, Inquiry, Move, Result
from ..reasoner import Fault, Reasoner, TurnContext
from ..running import Running
from ..stages.check import answer_at_once, apology, checked
from ..stages.gaps import diagnosed
from ..toolbox import Toolbox, counsels, toolbox
from ..wording import Wording, read_by_people
from .quick import answered, classify, nothing_to_say
from .router import Answered

log = logging.getLogger(__name__)

_ENOUGH = 0.6
"""The share of a turn's time after which the model must answer with what there is."""
_APOLOGY = "I am sorry, I could not put an answer together. Please ask again."


async def run_tools(running: Running, reasoner: Reasoner, turn: TurnContext) -> Answered:
    """One entry for one message (N-003): a message that needs no data leaves after one call, without a tool (N-026)."""
    if turn.agent is not None and counsels(turn.agent):
        text, seen = await counsel(running, reasoner, turn)
        return Answered(text, turn.directive, "", None, sources=seen.sources(text))
    if not isinstance(reasoner, Inquirer):
        return answered(turn, await analyse(running, turn))
    classified = await classify(running, reasoner, turn)
    if classified is None:
        return answered(turn, nothing_to_say(turn, None))
    if not classified.reads:
        return answered(turn, answer_at_once(classified))
    assert turn.agent is not None, "a model classified it by the agent's prompts"
    desk = Desk(running, turn.agent)
    await desk.reach_outside()
    box = toolbox(turn.agent, running.claim.who, desk.tools)
    turn = as_said(running, turn, classified.tier, action=True)
    turn = await prepared(running, reasoner, turn, tuple(box.tools.values()))
    return answered(turn, await Work(running, reasoner, turn, classified, box).analysis())


class Work:
    """The work on one message that needs data.

    Args:
        running: the turn.
        reasoner: the model.
        turn: the context package.
        classified: the mode.
        box: the tools offered.
    """

    def __init__(self, running: Running, reasoner: Inquirer, turn: TurnContext, classified: Classified, box: Toolbox) -> None:
        assert turn.agent is not None, "a model classified it by the agent's prompts"
        self._running = running
        self._reasoner = reasoner
        self._turn = turn
        self._agent = turn.agent
        self._classified = classified
        self._findings = Findings()
        self._gate = Gate(box, running.claim.who)
        self._hands = hands(running, box, self._gate, self._findings)
        self._inquiry = Inquiry(classified.mode, classified.intent, box.definitions(), fresh_mark(turn))
        self._due = time.monotonic() + _ENOUGH * running.settings.turn_limit

    async def analysis(self) -> Analysis:
        """The whole answer."""
        draft = await self._worked()
        if draft is not None:
            draft = await self._worded(draft)
        findings, running = self._findings, self._running
        with running.phase("4 reconcile"):
            diagnosis = await diagnosed(running, self._turn.user_text, self._classified.mode, findings)
        running.instructions(findings.instruction_tokens)
        get_current_span().set_attribute("phronesis.instructions.tags", findings.tags)
        with running.phase("5 return"):
            if draft is None:
                running.degrade("final")
                text = self._agent.phrases.get("apology") or _APOLOGY
                return apology(self._classified, findings, diagnosis, text)
            return checked(self._classified, draft, findings, diagnosis, len(running.degraded))

    async def _worked(self) -> Draft | None:
        """Rounds until the model answers; `None` where it gives no usable answer."""
        for number in range(1, MAX_ROUNDS + 1):
            self._inquiry.closing = number == MAX_ROUNDS or self._gate.made >= MAX_TURN_CALLS or self._is_late()
            move = await self._move(number)
            if move is None:
                return None
            if move.calls and not self._inquiry.closing:
                await self._running.show("tools", names=[call.name for call in move.calls])
                self._inquiry.rounds.append((move, await self._hands.work(number, move)))
            elif not self._inquiry.rounds and not self._inquiry.closing:
                # A data mode that reads nothing is told once that it should; nothing is called in its place (N-005).
                told = Result(None, self._agent.prompts.get("unread", ""), "note")
                self._inquiry.rounds.append((Move(text=move.text), (told,)))
            else:
                return await self._parsed(move.text)
        return None

    async def _move(self, number: int) -> Move | None:
        name = f"round.{number}"
        try:
            with self._running.phase("1 requirements" if number > 1 and not self._findings.tags else "think"):
                answer = await self._running.steps.made(name, Move, lambda: self._reasoner.proceed(self._turn, self._inquiry))
        except ServiceError as error:
            if not self._findings.reads:
                raise
            log.warning("the model failed after data was read: %s", error.code)
            return None
        return answer.value

    def _is_late(self) -> bool:
        return time.monotonic() >= self._due

    async def _parsed(self, said: str) -> Draft | None:
        found = parse_draft(said)
        if isinstance(found, Draft):
            return found
        log.warning("the final answer is no good: %s", found.wrong)
        draft = await self._rewritten("answer.repair", found)
        if draft is None:
            log.error("the model gave no usable final answer twice")
        return draft

    async def _worded(self, draft: Draft) -> Draft:
        """The draft in business language: written again once by the model; what is left, code replaces (N-055)."""
        wording = Wording(self._findings.rows)
        words = wording.found(read_by_people(draft))
        if not words:
            return draft
        wrong = f"These words are not for the reader, say it in business terms: {', '.join(words)}."
        again = await self._rewritten("answer.wording", Fault(draft.model_dump_json(), wrong))
        return again or draft

    async def _rewritten(self, name: str, fault: Fault) -> Draft | None:
        try:
            answer = await self._running.steps.made(
                name, Draft, lambda: self._reasoner.rewrite(self._turn, self._inquiry, fault)
            )
        except ServiceError as error:
            log.warning("the final answer could not be written again: %s", error.code)
            return None
        return answer.value
