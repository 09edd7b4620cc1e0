"""What the rules make of a message beside a model: what they propose, and what a reply says of its origin."""

from __future__ import annotations

import logging

from phronesis_contracts import ServiceError

from ..models.reasoner import Interpreter, Reasoner, TurnContext
from ..turns.execution import TurnRun
from ..understanding.answering import EMPTY_SCHEMA, RuleAnswer, answer_by_rules
from ..understanding.language import detect
from ..understanding.plan import Compose
from ..understanding.wording import Wording

log = logging.getLogger(__name__)


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
