"""Stage summarise: the stored summary of a long conversation is carried on, beside the loop and not before it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_tokens import clean, cut

from ..history import STEP, Past, Summary
from ..ports import Conversations
from ..reasoner import Reasoner, Summariser, TurnContext
from ..running import Running
from ..summary import parted

log = logging.getLogger(__name__)

MOST = 600
"""Tokens of a summary by a model that are kept."""
PURPOSE = "summarise"


async def carry_on(running: Running, reasoner: Reasoner, conversations: Conversations, turn: TurnContext, past: Past) -> None:
    """Store a summary that reaches up to the window, once so many turns have left it.

    The rule's summary, which the turn at hand shows anyway, is what is stored where there is no model; with one, what the
    model made of the same turns, in one call. Where that fails the rule's stands, and the reply is marked.
    """
    if len(past.aged) < STEP:
        return
    summary = turn.summary
    if isinstance(reasoner, Summariser) and turn.agent and PURPOSE in turn.agent.prompts:
        summary = await _by_model(running, reasoner, turn, past)
    try:
        await conversations.keep_summary(running.claim.who.tenant, running.claim.conversation_id, summary)
    except ServiceError as error:
        log.warning("the summary could not be stored, the next turn makes it again: %s", error.code)


async def _by_model(running: Running, reasoner: Summariser, turn: TurnContext, past: Past) -> Summary:
    _, dropped = parted(past.kept, past.aged)
    try:
        answer = await running.steps.summarised(PURPOSE, lambda: reasoner.summarise(turn, past.summary, tuple(dropped)))
    except ServiceError as error:
        log.warning("the model made no summary: %s", error.code)
        answer = None
    if answer is None or answer.value is None:
        running.degrade("summary")
        return turn.summary
    text = cut(clean(answer.value.summary), MOST)
    return turn.summary.model_copy(update={"text": text, "text_through": turn.summary.through, "notes": ()})


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` while the block runs: both have ended when it is left, and a block that fails stops the work."""
    task = asyncio.create_task(work)
    try:
        yield
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
