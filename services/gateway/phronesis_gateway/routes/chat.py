"""The analysts' endpoint: a question in, the whole answer as one object out (N-007, N-053)."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field, field_validator
from starlette.responses import Response

from phronesis_contracts import BadRequest, Unavailable
from phronesis_contracts.orchestrator import MAX_TEXT, Turn
from phronesis_gateway.answers import PROBLEMS, answers
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed
from phronesis_gateway.messages import AcceptedTurn, Given, MessageGiven
from phronesis_gateway.problems import turn_problem
from phronesis_gateway.submission import Refused, Turns
from phronesis_gateway.summaries import Analysed, analysed

from .turns import accepted, ended_turn

CHAT = "/api/v1/chat/message"
_NAMES = {"currentMessageText": "query"}
"""Fields of a message as this endpoint names them."""


class ChatGiven(Given):
    """A question to an analyst."""

    query: str = Field(min_length=1, max_length=MAX_TEXT, json_schema_extra={"format": "not-blank"})
    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    agent: str = Field(default="noor", min_length=1, max_length=64, json_schema_extra={"format": "analyst"})

    @field_validator("query")
    @classmethod
    def _not_blank(cls, query: str) -> str:
        if not query.strip():
            raise ValueError("a question has words")
        return query


def router(door: Door, turns: Turns, wait: float) -> APIRouter:
    """The route.

    Args:
        door: lets callers in.
        turns: hands turns in and waits for them.
        wait: seconds that the endpoint waits for a turn's end.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["chat"])

    @routes.post(CHAT, responses=answers(Analysed) | answers(AcceptedTurn, 202))
    async def ask_analyst(chat: ChatGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Ask an analyst and wait for the whole answer. 202 when the turn has not ended in time: it goes on."""
        given = {"conversation_id": chat.conversation_id, "current_message_text": chat.query, "agent": chat.agent}
        message = MessageGiven(**{name: value for name, value in given.items() if value is not None})
        try:
            async with turns.submitted(who, message, key) as turn:
                found = await turns.ended(who, turn, wait)
                return _answer(found) if found else await accepted(turns, who, turn)
        except Refused as refused:
            problem = refused.problem
            return turn_problem(problem.model_copy(update={"field": _NAMES.get(problem.field or "", problem.field)}))

    return routes


def _answer(turn: Turn) -> Response:
    if turn.reply is None:
        return ended_turn(turn)
    if turn.reply.analysis is not None:
        return Response(analysed(turn.reply, turn.reply.analysis).sent(), media_type="application/json")
    if "instructions" in turn.reply.degraded:
        raise Unavailable("the agent's instructions could not be had", retry_after=1)
    raise BadRequest("this agent gives no analysis; send it messages by /api/v1/conversations/messages", field="agent")
