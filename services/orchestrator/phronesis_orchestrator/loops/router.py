"""The router loop of the dialogue agent: decide, retrieve if asked for, answer with the next directive (seed 004)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from phronesis_contracts import ServiceError
from phronesis_contracts.analysis import Analysis
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive, Source

from ..answers import salvage
from ..cognition.thinking import as_said, prepared
from ..phrases import key_phrases
from ..reasoner import MAX_PHRASE, Composed, Fault, Reasoner, Routed, TurnContext
from ..running import Running

log = logging.getLogger(__name__)

_APOLOGY = "I am sorry, I could not put an answer together. Please ask again."


@dataclass(frozen=True)
class Answered:
    """What the loop came to."""

    text: str
    directive: Directive
    reasoning: str
    memory: AugmentedMemoryContext | None
    analysis: Analysis | None = None
    """The whole answer of an analyst."""
    sources: tuple[Source, ...] = ()
    """What the answer cites, where its loop knows that."""


async def run_router(running: Running, reasoner: Reasoner, turn: TurnContext) -> Answered:
    """One router call, at most one retrieval, one final call; each call is repaired at most once."""
    with running.phase("II route"):
        routed = await _route(running, reasoner, turn)
        log.info("the router decided: %s", routed.decision)  # D-065
    await running.show("routed", decision=routed.decision)
    memory = None
    if routed.decision == "query_memory":
        with running.phase("III retrieve"):
            memory = await _retrieve(running, turn, routed)
        await running.show("retrieved", found=len(memory.memory_units) + len(memory.concepts))
    turn = as_said(running, turn, routed.tier, action=memory is not None)
    turn = await prepared(running, reasoner, turn, found=_size(memory) if memory else None)
    with running.phase("IV answer"):
        composed = await _compose(running, reasoner, turn, routed.direct_response, memory)
    directive = composed.next_agent_directive
    if directive is None:
        log.warning("no usable directive; the earlier one stays")
    return Answered(composed.user_response, directive or turn.directive, composed.directive_reasoning[:500], memory)


async def _route(running: Running, reasoner: Reasoner, turn: TurnContext) -> Routed:
    """The decision; where none can be had, memory is asked with phrases drawn by code (D-133, D-134)."""
    try:
        answer = await running.steps.routed("route", lambda: reasoner.route(turn))
        if answer.value is None:
            fault = answer.fault
            answer = await running.steps.routed("route.repair", lambda: reasoner.route(turn, fault))
    except ServiceError as error:
        log.warning("the router call failed: %s", error.code)
        answer = None
    if answer is None or answer.value is None:
        running.degrade("router")
        return Routed(decision="query_memory", key_phrases=key_phrases(turn.final_input, turn.history))
    routed = answer.value
    if routed.decision == "query_memory" and not routed.key_phrases:
        return routed.model_copy(update={"key_phrases": (turn.final_input[:MAX_PHRASE],)})  # D-135
    return routed


async def _retrieve(running: Running, turn: TurnContext, routed: Routed) -> AugmentedMemoryContext:
    phrases = routed.key_phrases or (turn.final_input[:MAX_PHRASE],)
    try:
        memory = await running.retrieve(phrases)
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
    running: Running, reasoner: Reasoner, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None
) -> Composed:
    """The reply; where the model gives none, what can be saved of it, the draft, or an apology (D-140)."""
    fault: Fault | None = None
    try:
        answer = await running.steps.composed("compose", lambda: reasoner.compose(turn, draft, memory))
        if answer.value is None:
            fault = answer.fault
            answer = await running.steps.composed("compose.repair", lambda: reasoner.compose(turn, draft, memory, fault))
        if answer.value is not None:
            return answer.value
        fault = answer.fault or fault
    except ServiceError as error:
        if not draft and fault is None:
            raise
        log.warning("the final call failed: %s", error.code)
    running.degrade("final")
    phrases = turn.agent.phrases if turn.agent else {}
    return Composed(user_response=(salvage(fault.said) if fault else None) or draft or phrases.get("apology") or _APOLOGY)
