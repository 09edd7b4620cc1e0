"""Talking to the agents of the platform itself.

`ask` hands a turn in and waits, `turn_get` looks where it is; and results of calls.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from pydantic import BaseModel, Field

from phronesis_bus import Bus
from phronesis_bus import ask as ask_owner
from phronesis_contracts import BadRequest, Message, NotFound, Principal, ServiceError, TooLarge, TurnEnded
from phronesis_contracts.orchestrator import MAX_TEXT, TURN_CANCEL, Problem, Turn, TurnProgress, TurnRef, TurnStatus, turn_id
from phronesis_contracts.tools import schema_of_input, schema_of_output

from ..auth.keys import WRITE, require_scope, require_whole
from ..http.requests import MessageGiven
from ..turns.submission import SubmittedTurn, TurnRefused, TurnService

MAX_RESULT = 125_000
"""Bytes of a result, what 25,000 tokens of prose may have: more would fill the window of the model that reads it. Tools that
cut their answers themselves cut them by tokens."""


def success_result(found: BaseModel, *, reads: bool) -> types.CallToolResult:
    """What a tool answered.

    Args:
        reads: whether the tool changed nothing. Only then can a large answer be withheld: the caller may ask for less,
            while an error in place of a write's answer would say that nothing was written.

    Raises:
        TooLarge: the answer of a tool that only reads is over `MOST`.
    """
    text = found.__pydantic_serializer__.to_json(found).decode()
    if reads and len(text) > MAX_RESULT:
        raise TooLarge(f"the result is over {MAX_RESULT} bytes; ask for less: a smaller limit, or a narrower question")
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=json.loads(text))


def problem_result(body: dict[str, Any]) -> types.CallToolResult:
    """A problem, `code`, `status` and `detail` and what else is known, for the model to read and to act on.

    It is text alone: structured content has to be what the tool's output schema says.
    """
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(body))], is_error=True)


def error_result(error: ServiceError) -> types.CallToolResult:
    return problem_result(error.body())


log = logging.getLogger(__name__)

LONGEST = 300.0
"""Seconds that one call may wait for the end of a turn."""
CANCEL_SECONDS = 3.0
"""Seconds in which the turn of a call that was given up has to be cancelled."""
PHASES = ("preprocessed", "routed", "retrieved", "answered")

Progress = Callable[[float, float, str], Awaitable[None]]
"""Takes how far a turn is, of how much, in words."""


class Ask(Message):
    """A message to an agent of the platform."""

    message: str = Field(min_length=1, max_length=MAX_TEXT)
    conversation_id: str | None = Field(
        default=None, min_length=1, max_length=64, description="conversation to go on with; a new one without it"
    )
    agent: str = Field(default="dialogue", min_length=1, max_length=64, description="who answers")
    wait: float = Field(default=60.0, ge=0, le=LONGEST, description="seconds to wait for the reply")


ASK = types.Tool(
    name="ask",
    description="Ask an agent of the platform, which knows the caller's memory, and wait for its reply. Cancelling the "
    "call cancels the turn.",
    input_schema=schema_of_input(Ask.model_json_schema()),
    output_schema=schema_of_output(Turn.model_json_schema()),
    annotations=types.ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
)


class AskTool:
    def __init__(self, bus: Bus, turns: TurnService) -> None:
        self._bus = bus
        self._turns = turns

    async def ask(self, who: Principal, given: Ask, key: str, progress: Progress) -> types.CallToolResult:
        """Hand a turn in under `key`, and wait for its end."""
        require_whole(who)
        require_scope(who, WRITE)
        message = MessageGiven(conversation_id=given.conversation_id, current_message_text=given.message, agent=given.agent)
        if message.empty:
            raise BadRequest("a message needs text", field="message")
        id = turn_id(who.tenant, who.user, key)
        try:
            async with self._turns.submitted(who, message, key) as turn:
                await progress(0, _STEPS, "accepted")
                return await self._end(who, turn, given.wait, progress)
        except TurnRefused as refusal:
            return problem_result(refusal.problem.model_dump(exclude_none=True) | _field(refusal.problem.field))
        except asyncio.CancelledError:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True):
                await self.cancel(who, id)
            raise

    async def cancel(self, who: Principal, id: str) -> None:
        """Cancel a turn, also one that is on its way in; nothing is said of one that has ended."""
        while True:
            try:
                await ask_owner(self._bus, who, TURN_CANCEL, TurnRef(turn_id=id))
            except NotFound:
                await asyncio.sleep(0.2)
                continue
            except TurnEnded:
                pass
            except ServiceError as error:
                log.warning("a turn whose caller went away could not be cancelled: %s", error.code)
            return

    async def _end(self, who: Principal, turn: SubmittedTurn, wait: float, progress: Progress) -> types.CallToolResult:
        reached = 0

        async def on_progress(said: TurnProgress) -> None:
            # A turn that is tried again goes through its phases again; what a client is told must only grow.
            nonlocal reached
            if said.phase in PHASES[reached:]:
                reached = PHASES.index(said.phase) + 1
                await progress(reached, _STEPS, said.phase)

        ended = await self._turns.ended(who, turn, wait, on_progress)
        return _turn_result(ended or await self._turns.state(who, turn.turn_id))


_STEPS = len(PHASES)
_FIELDS = {"currentMessageText": "message", "conversationId": "conversation_id"}


def _field(name: str | None) -> dict[str, str]:
    return {} if name is None else {"field": _FIELDS.get(name, name)}


def _turn_result(turn: Turn) -> types.CallToolResult:
    """A turn as a result: its problem is the call's, and one that was cancelled gave no answer."""
    found = turn.problem
    if found is None and turn.status in (TurnStatus.CANCELLED, TurnStatus.PARKED):
        found = Problem(
            code=TurnEnded.code, status=TurnEnded.status, detail=f"the turn ended without a reply: it is {turn.status}"
        )
    if found is not None:
        more = {"turn_id": turn.turn_id, "conversation_id": turn.conversation_id}
        return problem_result(found.model_dump(exclude_none=True) | more)
    return success_result(turn, reads=False)
