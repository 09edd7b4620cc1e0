"""Messages and turns."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts import Principal, TurnEnded
from phronesis_contracts.orchestrator import (
    TURN_CANCEL,
    TURN_LIST,
    TURN_RETRY,
    ListTurns,
    Reply,
    Turn,
    TurnRef,
    TurnStatus,
)
from phronesis_contracts.orchestrator import Turns as TurnList
from phronesis_contracts.traces import TURN_REPLAY, TURN_TRACE, Replayed, ReplayTurn, TraceOfTurn
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.messages import AcceptedTurn, MessageGiven, ReplayGiven
from phronesis_gateway.problems import refusal, turn_problem
from phronesis_gateway.submission import Refused, Submitted, Turns
from phronesis_gateway.traces import Traces, TurnTrace

MESSAGES = "/api/v1/conversations/messages"
TURNS = "/api/v1/turns"


def router(door: Door, bus: Bus, turns: Turns, traces: Traces, wait: float) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        turns: hands turns in and waits for them.
        traces: puts traces together.
        wait: seconds that the messages endpoint waits for a turn's end.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["turns"])

    @routes.post(MESSAGES, responses=answers(Reply) | answers(AcceptedTurn, 202))
    async def send_message(message: MessageGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Send a message and wait for the reply (D-010). 202 when the turn has not ended in time: it goes on."""
        try:
            async with turns.submitted(who, message, key) as turn:
                ended = await turns.ended(who, turn, wait)
                return ended_turn(ended) if ended else await accepted(turns, who, turn)
        except Refused as refused:
            return turn_problem(refused.problem)

    @routes.api_route(MESSAGES, methods=["GET", "DELETE"], include_in_schema=False)
    async def no_such_method() -> Response:
        # Else this would be about the conversation with the id `messages`.
        raise HTTPException(405, headers={"Allow": "POST"})

    @routes.post(TURNS, status_code=202, responses=answers(AcceptedTurn, 202))
    async def submit_turn(message: MessageGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Hand a message in. 202 means that its turn is stored and will end exactly once."""
        try:
            async with turns.submitted(who, message, key) as turn:
                return await accepted(turns, who, turn)
        except Refused as refused:
            return turn_problem(refused.problem)

    @routes.get(TURNS, responses=answers(TurnList))
    async def list_turns(
        who: Caller,
        conversation_id: Annotated[str | None, Query(max_length=64)] = None,
        status: TurnStatus | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> Response:
        """The caller's turns, newest first, without their replies."""
        wanted = ListTurns(conversation_id=conversation_id, status=status, limit=limit)
        return as_json(await ask(bus, who, TURN_LIST, wanted))

    @routes.get(TURNS + "/{id}", responses=answers(Turn))
    async def get_turn(id: Id, who: Caller, include: Literal["trace"] | None = None) -> Response:
        """The state of a turn, with its reply or its problem once it has ended; on request with the trace of its answer."""
        turn = await turns.state(who, id)
        if include == "trace":
            trace = await ask(bus, who, TURN_TRACE, TraceOfTurn(turn_id=id))
            turn = turn.model_copy(update={"trace": trace})
        return as_json(turn)

    @routes.delete(TURNS + "/{id}", responses=answers(Turn))
    async def cancel_turn(id: Id, who: Caller) -> Response:
        """Cancel a turn. One that has ended answers 409, with its end in `turn`."""
        try:
            return as_json(await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=id)))
        except TurnEnded as error:
            return refusal(error, turn=(await turns.state(who, id)).model_dump(mode="json"))

    @routes.post(TURNS + "/{id}/retry", status_code=202, responses=answers(Turn, 202))
    async def retry_turn(id: Id, who: Caller, key: IdempotencyKey) -> Response:
        """Make a new turn of a parked or failed one, linked to it."""
        turn = await ask(bus, who, TURN_RETRY, TurnRef(turn_id=id), key=scoped(who, key))
        return as_json(turn, 202, _location(turn.turn_id))

    @routes.post(TURNS + "/{id}/replay", responses=answers(Replayed))
    async def replay_turn(id: Id, given: ReplayGiven, who: Caller) -> Response:
        """Run an ended turn again on what was recorded of it, and show the difference; 409 where that cannot be."""
        return as_json(await ask(bus, who, TURN_REPLAY, ReplayTurn(turn_id=id, with_instructions=given.with_instructions)))

    @routes.get(TURNS + "/{id}/trace", responses=answers(TurnTrace))
    async def get_trace(id: Id, who: Caller) -> Response:
        """Every span of a turn that its services still remember; those that did not answer stand in `missing`."""
        turn = await turns.state(who, id)
        return as_json(await traces.of(who, id, turn.trace_id))

    return routes


async def accepted(turns: Turns, who: Principal, turn: Submitted) -> Response:
    """202: where an accepted turn is, and where to look for it."""
    return as_json(await turns.accepted(who, turn), 202, _location(turn.turn_id))


def ended_turn(turn: Turn) -> Response:
    """The reply of an ended turn, or why it has none."""
    if turn.reply is not None:
        return as_json(turn.reply)
    more = {"turn_id": turn.turn_id, "conversation_id": turn.conversation_id, "instance": f"{TURNS}/{turn.turn_id}"}
    if turn.problem is not None:
        return turn_problem(turn.problem, **more)
    return refusal(TurnEnded(f"the turn ended without a reply: it is {turn.status}"), **more)


def _location(turn: str) -> dict[str, str]:
    return {"Location": f"{TURNS}/{turn}"}
