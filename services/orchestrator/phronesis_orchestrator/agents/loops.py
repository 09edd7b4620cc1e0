"""The loops that agents run, named by a profile: router, quick, and tools.

In the tools loop the model decides which tool it calls when; the gate keeps the order and the limits. Code, not the model, says
what was read, what is missing, which figures stand, and how sure the answer is.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from opentelemetry.trace import get_current_span

from phronesis_contracts import ModelUnavailable, ServiceError
from phronesis_contracts.answers import Analysis
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import ClientToolCall, Directive, Source

from ..models.parsing import parse_draft, salvage
from ..models.prompts import new_mark
from ..models.reasoner import (
    MAX_PHRASE,
    RULES,
    CallResult,
    Classification,
    ComposedReply,
    Draft,
    Fault,
    Inquirer,
    Inquiry,
    Interpreter,
    Move,
    Reasoner,
    RouteDecision,
    Router,
    TurnContext,
)
from ..turns.execution import Outcome, TurnRun
from ..understanding.answering import (
    EMPTY_SCHEMA,
    RuleAnswer,
    answer_by_rules,
    directive_after,
    is_grounded,
    keeps_facts,
    to_analysis,
)
from ..understanding.language import detect
from ..understanding.plan import Compose, Focus
from ..understanding.wording import Wording
from .check import Diagnosis, Evidence, answer_at_once, apology, check_draft, diagnose
from .cognition.preparation import apply_decision, prepare_plan
from .counsel.tools import TurnTools
from .counsel.turn import counsel
from .findings import Findings, build_executor
from .presentation import BannedWords, reader_texts, sanitize_answer
from .text import key_phrases
from .tools import MAX_ROUNDS, RECORDS, Gate, Toolbox, answers_like_dialogue, build_toolbox, max_calls, uses_allow_list


async def find_by_rules(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> RuleAnswer | None:
    """What the rules make of the message, by a plan of their own or of the model's; `None` where they cannot be asked."""
    model = reasoner if isinstance(reasoner, Interpreter) else None
    try:
        return await answer_by_rules(running, turn, quotes=False, model=model)
    except ServiceError as error:
        log.warning("the turn goes on without what the rules would have found: %s", error.code)
        return None


_FROM_STORED = ("explain", "summarise")
"""Tasks that may be done from what memory or a document holds."""


def with_origin(turn: TurnContext, text: str, found: RuleAnswer | None, *, read: bool) -> str:
    """A reply with what its reader has to know of its origin: how the message was understood, or that nothing was read for it.

    Args:
        found: what the rules made of the message.
        read: whether memory gave anything to write from.
    """
    if found is None:
        return text
    plan = found.understood.plan
    if isinstance(plan, Compose):
        stored = plan.task in _FROM_STORED and read
        return text if stored or turn.media_text else f"{text}\n\n{sentence_of('composed', turn)}"
    return text if found.taken is None else found.taken.around(text)


def sentence_of(key: str, turn: TurnContext) -> str:
    """A sentence of the language that the message is in."""
    return Wording(EMPTY_SCHEMA, detect(turn.user_text, turn.focus.language).name).sentence(key)


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoopAnswer:
    """What the loop came to."""

    text: str
    directive: Directive
    reasoning: str
    memory: AugmentedMemoryContext | None
    analysis: Analysis | None = None
    """The whole answer of an analyst."""
    sources: tuple[Source, ...] | None = None
    """What the answer rests on, where its loop knows that; else what retrieval gave, by its rank."""
    focus: Focus | None = None
    """What the conversation is about from now on; as before where it is `None`."""
    reasoner: str = ""
    """Who answered, where that is another than the turn was begun with."""
    tool_calls: tuple[ClientToolCall, ...] = ()
    """Calls that the client has to make itself before there is an answer."""


async def by_rules(running: TurnRun, turn: TurnContext) -> LoopAnswer:
    """The answer without a language model. Raises `ServiceError`: what it has to be read from is away."""
    return _as_it_stands(turn, await answer_by_rules(running, turn))


def _as_it_stands(turn: TurnContext, answer: RuleAnswer) -> LoopAnswer:
    """What the rules answer, in their own words."""
    if turn.agent is not None and RECORDS in turn.agent.stages:
        analysis = to_analysis(answer)
        return LoopAnswer(analysis.answer, turn.directive, "", answer.memory, analysis, answer.sources, answer.focus)
    directive, reason = directive_after(answer)
    return LoopAnswer(answer.written.text, directive, reason, answer.memory, None, answer.sources, answer.focus)


async def fall_back_to_rules(running: TurnRun, turn: TurnContext) -> LoopAnswer:
    """The rules' answer to a turn whose model failed for good; the reply is marked for it, and the stance stays.

    Nothing of it is journalled as a model's step, so that whoever takes the turn over does not mistake it for the model's.

    Raises:
        ServiceError: what the rules cannot do without failed, too.
    """
    running.degrade("model")
    if turn.agent is not None and uses_allow_list(turn.agent) and not answers_like_dialogue(turn.agent):
        text, seen = await counsel(running, RULES, turn)
        answer = LoopAnswer(text, turn.directive, "", None, sources=seen.sources(text))
    else:
        answer = replace(await by_rules(running, turn), directive=turn.directive)
    return replace(answer, reasoner=RULES.name)


async def run_router(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
    """One router call, at most one retrieval, one final call; each call is repaired at most once."""
    if not isinstance(reasoner, Router):
        return await by_rules(running, turn)
    with running.phase("II route"):
        routed = await _route(running, reasoner, turn)
        log.info("the router decided: %s", routed.decision)
        await running.show("routed", decision=routed.decision)
        found = await find_by_rules(running, reasoner, turn)
        if found is not None and found.stands:
            return _as_it_stands(turn, found)
        proposal = found if found is not None and is_grounded(found) else None
    memory = None
    if routed.decision == "query_memory":
        with running.phase("III retrieve"):
            memory = await _retrieve(running, turn, routed)
        await running.show("retrieved", found=len(memory.memory_units) + len(memory.concepts))
    turn = apply_decision(running, turn, routed.tier, action=memory is not None)
    turn = await prepare_plan(running, reasoner, turn, found=_size(memory) if memory else None)
    with running.phase("IV answer"), running.live(turn.agent):
        draft = proposal.written.text if proposal is not None else routed.direct_response
        composed, outcome = await _compose(running, reasoner, turn, draft, memory)
        if composed is None:
            running.judge("prose", "failed")
            return await fall_back_to_rules(running, turn)
    text = composed.user_response
    if proposal is not None and not keeps_facts(text, proposal.written.text):
        log.warning("the reply left out or changed what was found; the rules' answer stands")
        text = proposal.written.text
        outcome = "failed" if outcome == "failed" else "rejected"
    running.judge("prose", outcome)
    text = with_origin(turn, text, found, read=memory is not None and _size(memory) > 0)
    directive = composed.next_agent_directive
    if directive is None:
        log.warning("no usable directive; the earlier one stays")
    answer = LoopAnswer(text, directive or turn.directive, composed.directive_reasoning[:500], memory)
    return answer if proposal is None else replace(answer, sources=proposal.sources or None, focus=proposal.focus)


async def _route(running: TurnRun, reasoner: Router, turn: TurnContext) -> RouteDecision:
    """The decision; where none can be had, memory is asked with phrases drawn by code."""
    try:
        answer = await running.steps.made("route", RouteDecision, lambda: reasoner.route(turn))
        if answer.value is None:
            fault = answer.fault
            answer = await running.steps.made("route.repair", RouteDecision, lambda: reasoner.route(turn, fault))
    except ServiceError as error:
        log.warning("the router call failed: %s", error.code)
        answer = None
    if answer is None or answer.value is None:
        running.degrade("router")
        return RouteDecision(decision="query_memory", key_phrases=key_phrases(turn.final_input, turn.history))
    routed = answer.value
    if routed.decision == "query_memory" and not routed.key_phrases:
        return routed.model_copy(update={"key_phrases": (turn.final_input[:MAX_PHRASE],)})
    return routed


async def _retrieve(running: TurnRun, turn: TurnContext, routed: RouteDecision) -> AugmentedMemoryContext:
    phrases = routed.key_phrases or (turn.final_input[:MAX_PHRASE],)
    try:
        memory = await running.retrieve(phrases, turn.focus.to_forget)
    except ServiceError as error:
        log.warning("retrieval failed: %s", error.code)
        running.degrade("memory")
        return AugmentedMemoryContext(user_id=running.claim.who.user, key_phrases=phrases)
    for part in memory.degraded:
        running.degrade(part)
    return memory


def _size(memory: AugmentedMemoryContext) -> int:
    """Characters that retrieval gave."""
    return sum(len(item.text) for item in (*memory.memory_units, *memory.concepts))


async def _compose(
    running: TurnRun, reasoner: Router, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None
) -> tuple[ComposedReply | None, Outcome]:
    """The reply, and what became of the model's; where it gives none, what can be saved of it, or the draft, or `None`."""
    fault: Fault | None = None
    try:
        answer = await running.steps.made("compose", ComposedReply, lambda: reasoner.compose(turn, draft, memory))
        if answer.value is None:
            fault = answer.fault
            answer = await running.steps.made(
                "compose.repair", ComposedReply, lambda: reasoner.compose(turn, draft, memory, fault)
            )
        if answer.value is not None:
            return answer.value, "accepted" if fault is None else "repaired"
        fault = answer.fault or fault
    except ModelUnavailable as error:
        log.warning("the final call failed: %s", error.code)
    except ServiceError as error:
        if not draft and fault is None:
            raise
        log.warning("the final call failed: %s", error.code)
    saved = (salvage(fault.said) if fault else None) or draft
    if saved is None:
        return None, "failed"
    running.degrade("final")
    return ComposedReply(user_response=saved), "failed"


_NO_DATA = "I answer this without data, and your question needs some."


async def run_quick(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
    """Answer in one call; a message that needs data is told so."""
    if not isinstance(reasoner, Inquirer):
        return await by_rules(running, turn)
    classified = await classify(running, reasoner, turn)
    if classified is None:
        return await fall_back_to_rules(running, turn)
    if classified.reads:
        return analysis_answer(turn, no_answer(turn, classified))
    return analysis_answer(turn, answer_at_once(classified))


async def classify(running: TurnRun, reasoner: Inquirer, turn: TurnContext) -> Classification | None:
    """The mode of the message, repaired once; `None` where the model gives none."""
    with running.phase("classify"):
        try:
            answer = await running.steps.made("classify", Classification, lambda: reasoner.classify(turn))
        except ModelUnavailable as error:
            log.warning("the classification failed: %s", error.code)
            return None
        if answer.value is None:
            fault = answer.fault
            try:
                answer = await running.steps.made("classify.repair", Classification, lambda: reasoner.classify(turn, fault))
            except ServiceError as error:
                log.warning("the classification could not be repaired: %s", error.code)
    if answer.value is None:
        log.error("the model gave no usable classification twice")
        running.degrade("classify")
        return None
    log.info("the message has mode %s", answer.value.mode)
    await running.show("classified", mode=answer.value.mode)
    return answer.value


def analysis_answer(turn: TurnContext, analysis: Analysis) -> LoopAnswer:
    """A whole answer as a loop hands it on."""
    return LoopAnswer(analysis.answer, turn.directive, "", None, analysis)


def no_answer(turn: TurnContext, classified: Classification) -> Analysis:
    """The answer where data is needed and the agent reads none."""
    phrases = turn.agent.phrases if turn.agent else {}
    return apology(classified, Findings(), Diagnosis(), phrases.get("no_data") or _NO_DATA)


_ENOUGH = 0.6
"""The share of a turn's time after which the model must answer with what there is."""


async def run_tools(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
    """One entry for one message: a message that needs no data leaves after one call, without a tool."""
    if turn.agent is not None and answers_like_dialogue(turn.agent) and not isinstance(reasoner, Inquirer):
        return await by_rules(running, turn)
    if turn.agent is not None and uses_allow_list(turn.agent):
        try:
            text, seen = await counsel(running, reasoner, turn)
        except ModelUnavailable as error:
            log.warning("the model failed before it did anything: %s", error.code)
            return await fall_back_to_rules(running, turn)
        return LoopAnswer(text, turn.directive, "", None, sources=seen.sources(text))
    if not isinstance(reasoner, Inquirer):
        return await by_rules(running, turn)
    classified = await classify(running, reasoner, turn)
    if classified is None:
        return await fall_back_to_rules(running, turn)
    found = None if classified.mode in _NO_PROPOSAL else await find_by_rules(running, reasoner, turn)
    if found is not None and found.stands:
        return _as_it_stands(turn, found)
    proposal = found if found is not None and is_grounded(found) else None
    if not classified.reads:
        if proposal is not None and classified.mode in _ASKS_BACK:
            return proposed_answer(turn, proposal)
        at_once = answer_at_once(classified)
        text = with_origin(turn, at_once.answer, found, read=False)
        return analysis_answer(turn, at_once.model_copy(update={"answer": text}))
    assert turn.agent is not None, "a model classified it by the agent's prompts"
    turn_tools = TurnTools(running, turn.agent)
    await turn_tools.reach_outside()
    toolbox = build_toolbox(turn.agent, running.claim.who, turn_tools.tools)
    turn = apply_decision(running, turn, classified.tier, action=True)
    turn = await prepare_plan(running, reasoner, turn, tuple(toolbox.tools.values()))
    work = AnalystWork(running, reasoner, turn, classified, toolbox, proposal)
    analysis = await work.analysis()
    running.judge("prose", work.outcome)
    if analysis is not None:
        answer = analysis_answer(turn, analysis)
        return answer if proposal is None else replace(answer, sources=proposal.sources or None, focus=proposal.focus)
    if proposal is None:
        return await fall_back_to_rules(running, turn)
    running.degrade("model")
    return replace(proposed_answer(turn, proposal), reasoner=RULES.name)


_NO_PROPOSAL = "GHI"
"""Modes of messages that are about the agent itself, about a term, or about nothing."""
_ASKS_BACK = "EJ"
"""Modes in which a model asks for what the rules may know."""


def proposed_answer(turn: TurnContext, proposal: RuleAnswer) -> LoopAnswer:
    """The rules' analysis as the whole answer."""
    analysis = to_analysis(proposal)
    return LoopAnswer(analysis.answer, turn.directive, "", None, analysis, proposal.sources or None, proposal.focus)


_ORIGIN = "Origin: read from the records by rules, for this message."


class AnalystWork:
    """The work on one message that needs data."""

    def __init__(
        self,
        running: TurnRun,
        reasoner: Inquirer,
        turn: TurnContext,
        classified: Classification,
        toolbox: Toolbox,
        proposal: RuleAnswer | None = None,
    ) -> None:
        assert turn.agent is not None, "a model classified it by the agent's prompts"
        self._running, self._reasoner, self._turn = running, reasoner, turn
        self._agent = turn.agent
        self._classified = classified
        self._findings = Findings()
        self._gate = Gate(toolbox, running.claim.who, max_calls(turn.agent))
        self._executor = build_executor(running, toolbox, self._gate, self._findings)
        self._proposal = proposal
        proposed = f"{_ORIGIN}\n{proposal.written.text}" if proposal is not None else ""
        self._inquiry = Inquiry(classified.mode, classified.intent, toolbox.definitions(), new_mark(turn), proposal=proposed)
        self.outcome: Outcome = "accepted"
        """What became of what the model wrote."""
        self._due = time.monotonic() + _ENOUGH * running.seconds

    async def analysis(self) -> Analysis | None:
        """The whole answer; `None` where the model gave none."""
        draft = await self._run_rounds()
        if draft is None:
            self.outcome = "failed"
            return None
        draft = await self._reword(draft)
        findings, running = self._findings, self._running
        if (proposal := self._proposal) is not None:
            if not keeps_facts(draft.answer, proposal.written.text, Evidence(findings).holds):
                log.warning("the answer left out or changed what was found; the rules' answer stands")
                self.outcome = "rejected"
                return to_analysis(proposal)
            draft = draft.model_copy(update={"answer": with_origin(self._turn, draft.answer, proposal, read=True)})
            if not findings.reads:
                told = to_analysis(proposal)
                return told.model_copy(update={"answer": sanitize_answer(draft.answer) or told.answer})
        with running.phase("4 reconcile"):
            diagnosis = await diagnose(running, self._turn.user_text, self._classified.mode, findings)
        running.instructions(findings.instruction_tokens)
        get_current_span().set_attribute("phronesis.instructions.tags", findings.tags)
        with running.phase("5 return"):
            return check_draft(self._classified, draft, findings, diagnosis, len(running.degraded))

    async def _run_rounds(self) -> Draft | None:
        """Rounds until the model answers; `None` where it gives no usable answer."""
        for number in range(1, MAX_ROUNDS + 1):
            self._inquiry.closing = number == MAX_ROUNDS or self._gate.full or self._is_late()
            move = await self._move(number)
            if move is None:
                return None
            if move.calls and not self._inquiry.closing:
                await self._running.show("tools", names=[call.name for call in move.calls])
                self._inquiry.rounds.append((move, await self._executor.run_round(number, move)))
            elif not self._inquiry.rounds and not self._inquiry.closing and self._proposal is None:
                # A data mode that reads nothing is asked once to read; nothing is called in its place.
                hint = CallResult(None, self._agent.prompts.get("unread", ""), "note")
                self._inquiry.rounds.append((Move(text=move.text), (hint,)))
            else:
                return await self._parse_answer(move.text)
        return None

    async def _move(self, number: int) -> Move | None:
        name = f"round.{number}"
        try:
            with self._running.phase("1 requirements" if number > 1 and not self._findings.tags else "think"):
                answer = await self._running.steps.made(name, Move, lambda: self._reasoner.proceed(self._turn, self._inquiry))
        except ModelUnavailable as error:
            log.warning("the model failed: %s", error.code)
            return None
        except ServiceError as error:
            if not self._findings.reads:
                raise
            log.warning("the model failed after data was read: %s", error.code)
            return None
        return answer.value

    def _is_late(self) -> bool:
        return time.monotonic() >= self._due

    async def _parse_answer(self, said: str) -> Draft | None:
        found = parse_draft(said)
        if isinstance(found, Draft):
            return found
        log.warning("the final answer is no good: %s", found.wrong)
        draft = await self._rewrite("answer.repair", found)
        self.outcome = "repaired"
        if draft is None:
            log.error("the model gave no usable final answer twice")
        return draft

    async def _reword(self, draft: Draft) -> Draft:
        """The draft in business language: written again once by the model; what is left, code replaces."""
        wording = BannedWords(self._findings.rows)
        words = wording.found(reader_texts(draft))
        if not words:
            return draft
        wrong = f"These words are not for the reader, say it in business terms: {', '.join(words)}."
        again = await self._rewrite("answer.wording", Fault(draft.model_dump_json(), wrong))
        return again or draft

    async def _rewrite(self, name: str, fault: Fault) -> Draft | None:
        try:
            answer = await self._running.steps.made(
                name, Draft, lambda: self._reasoner.rewrite(self._turn, self._inquiry, fault)
            )
        except ServiceError as error:
            log.warning("the final answer could not be written again: %s", error.code)
            return None
        return answer.value


LOOPS = {"quick": run_quick, "router": run_router, "tools": run_tools}
"""Loop by the name that a profile states."""
