"""Stage reflect: a text that others will read is looked at once more before it is given (V-045). Else the draft stands."""

from __future__ import annotations

import asyncio
import logging

from phronesis_contracts import ServiceError

from ..inquiry import Draft, Inquirer
from ..reasoner import TurnContext
from ..running import Running
from .thinker import Reflected, Thinker
from .thinking import writes_content

log = logging.getLogger(__name__)


async def reflected(running: Running, reasoner: Inquirer, turn: TurnContext, draft: Draft) -> Draft:
    """The draft, or the better one that came of a look back (V-047).

    Args:
        running: the turn.
        reasoner: what may look back.
        turn: its context, with its intent.
        draft: what was written.
    """
    if not isinstance(reasoner, Thinker) or not writes_content(turn):
        return draft
    try:
        with running.phase("4 reflect"):
            async with asyncio.timeout(running.cognition.settings.reflection_limit):
                answer = await running.steps.made("reflect", Reflected, lambda: reasoner.reflect(turn, draft))
    except (ServiceError, TimeoutError) as error:
        log.warning("the look back at the text failed: %s", getattr(error, "code", "too slow"))
        running.degrade("reflection")
        return draft
    if answer.value is None:
        running.degrade("reflection")
        return draft
    await running.show("reflected", score=answer.value.score)
    return draft.model_copy(update={"answer": answer.value.answer}) if answer.value.answer else draft
