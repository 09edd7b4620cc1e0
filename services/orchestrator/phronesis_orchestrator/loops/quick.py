"""The quick loop: one call that chooses the mode and, where it reads no data, answers at once (modes E to J)."""

from __future__ import annotations

import logging

from phronesis_contracts import ServiceError
from phronesis_contracts.analysis import Analysis

from ..analyst import analyse
from ..findings import Findings
from ..inquiry import Classified, Inquirer
from ..reasoner import Reasoner, TurnContext
from ..running import Running
from ..stages.check import answer_at_once, apology
from ..stages.gaps import Diagnosis
from .router import Answered

log = logging.getLogger(__name__)

_APOLOGY = "I am sorry, I could not put an answer together. Please ask again."
_NO_DATA = "I answer this without data, and your question needs some."


async def run_quick(running: Running, reasoner: Reasoner, turn: TurnContext) -> Answered:
    """Answer in one call; a message that needs data is told so."""
    if not isinstance(reasoner, Inquirer):
        return answered(turn, await analyse(running, turn))
    classified = await classify(running, reasoner, turn)
    if classified is None or classified.reads:
        return answered(turn, nothing_to_say(turn, classified))
    return answered(turn, answer_at_once(classified))


async def classify(running: Running, reasoner: Inquirer, turn: TurnContext) -> Classified | None:
    """The mode of the message, repaired once; `None` where the model gives none (N-024, N-038)."""
    with running.phase("classify"):
        answer = await running.steps.made("classify", Classified, lambda: reasoner.classify(turn))
        if answer.value is None:
            fault = answer.fault
            try:
                answer = await running.steps.made("classify.repair", Classified, lambda: reasoner.classify(turn, fault))
            except ServiceError as error:
                log.warning("the classification could not be repaired: %s", error.code)
    if answer.value is None:
        log.error("the model gave no usable classification twice")
        running.degrade("classify")
        return None
    log.info("the message has mode %s", answer.value.mode)
    await running.show("classified", mode=answer.value.mode)
    return answer.value


def answered(turn: TurnContext, analysis: Analysis) -> Answered:
    """A whole answer as a loop hands it on."""
    return Answered(analysis.answer, turn.directive, "", None, analysis)


def nothing_to_say(turn: TurnContext, classified: Classified | None) -> Analysis:
    """The answer where the model made no sense twice, or where data is needed and the agent reads none."""
    phrases = turn.agent.phrases if turn.agent else {}
    if classified is not None:
        return apology(classified, Findings(), Diagnosis(), phrases.get("no_data") or _NO_DATA)
    unclear = Classified(mode="J", intent="not understood")
    return apology(unclear, Findings(), Diagnosis(), phrases.get("apology") or _APOLOGY)
