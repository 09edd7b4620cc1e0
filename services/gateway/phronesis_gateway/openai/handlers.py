"""The routes of OpenAI's API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.responses import Response as Answer

from phronesis_bus import Bus, ask
from phronesis_contracts import NotFound, Principal, TimedOut, Unavailable
from phronesis_contracts.instructions import AGENT_LIST, ListAgents
from phronesis_contracts.orchestrator import TURN_CANCEL, Turn, TurnProgress, TurnRef

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, OpenStreams
from ..auth.keys import WRITE
from ..http.responses import ID_FORM, json_response, refusals, route_responses
from ..http.uploads import UploadReceiver
from ..turns.events import HEARTBEAT, LIVE_KINDS, EventStream, LiveReader
from ..turns.submission import SubmittedTurn, TurnService
from .completions import (
    ChatAsked,
    ChatCompletion,
    build_completion,
    closing_lines,
    failure_line,
    opening_chunk,
    restart_chunk,
    text_line,
)
from .errors import ENVELOPES, Model, Models, enveloped_route, turn_error
from .files import add_routes
from .questions import ModelNotFound, Question, QuestionSubmission, find_question
from .responses import Lines, Response, ResponseAsked, build_response, check_one_conversation, turn_id_of

_STILL = b": still here\n\n"
ResponseId = Annotated[str, Path(description="The response's id."), ID_FORM]
_STREAM: dict[str, Any] = {"content": {"text/event-stream": {}}}


class OpenAIHandlers:
    """What the routes do. `wait`: seconds that a whole answer is waited for."""

    def __init__(self, bus: Bus, turns: TurnService, uploads: UploadReceiver, wait: float) -> None:
        self._bus = bus
        self._turns = turns
        self._asking = QuestionSubmission(bus, turns, uploads)
        self._wait = wait

    async def models(self, who: Principal) -> tuple[Model, ...]:
        return tuple(Model(id=name) for name in (await ask(self._bus, who, AGENT_LIST, ListAgents())).agents)

    async def completed(self, who: Principal, body: ChatAsked, key: str | None) -> ChatCompletion:
        """A chat's whole answer. Raises `TimedOut` where it is not there in time: the turn goes on."""
        found, conversation, ignored = await self._chat(who, body)
        async with self._asking.asked(who, body.model, found.said, conversation, key, body.client(found)) as turn:
            ended = await self._turns.ended(who, turn, self._wait)
        if ended is None:
            raise TimedOut(f"the answer is not there yet; turn {turn.turn_id} goes on")
        if error := turn_error(ended):
            raise error
        return build_completion(ended, ignored + found.unheard(ended.reply))

    async def chunks(self, who: Principal, body: ChatAsked, key: str | None) -> AsyncGenerator[bytes, None]:
        """A chat's answer in pieces; the first is empty and comes once its turn is accepted."""
        found, conversation, ignored = await self._chat(who, body)
        async with self._asking.asked(who, body.model, found.said, conversation, key, body.client(found)) as turn:
            yield b""
            first = opening_chunk(turn.turn_id, body.model, int(time.time()))
            yield first.line()
            ended: Turn | None = None
            live = LiveReader(whole=True)
            async for heard in self._waited(who, turn):
                if isinstance(heard, TurnProgress):
                    for said in live.take(heard):
                        yield (
                            text_line(first, said.text or "")
                            if said.kind == "live"
                            else restart_chunk(first, turn.conversation_id, turn.turn_id)
                        )
                elif heard is None:
                    yield _STILL
                else:
                    ended = heard
        if ended is None or ended.reply is None:
            yield failure_line((ended and turn_error(ended)) or _stopping_error())
            return
        usage = bool(body.stream_options and body.stream_options.include_usage)
        for line in closing_lines(ended, first, ignored + found.unheard(ended.reply), live, usage=usage):
            yield line

    async def responded(self, who: Principal, body: ResponseAsked, key: str | None) -> Response:
        """A response: ended where that comes in time, or as it is then; at once where it is for the background."""
        found, conversation, ignored = await self._input(who, body)
        async with self._asking.asked(who, body.model, found.said, conversation, key, body.client(found)) as turn:
            ended = None if body.background else await self._turns.ended(who, turn, self._wait)
        now = ended or await self._turns.state(who, turn.turn_id)
        return build_response(now, body, ignored + found.unheard(now.reply))

    async def events(self, who: Principal, body: ResponseAsked, key: str | None) -> AsyncGenerator[bytes, None]:
        """A response's events; the first line is empty and comes once its turn is accepted."""
        found, conversation, ignored = await self._input(who, body)
        lines = Lines()
        async with self._asking.asked(who, body.model, found.said, conversation, key, body.client(found)) as turn:
            yield b""
            for line in lines.opening(build_response(await self._turns.state(who, turn.turn_id), body, ignored)):
                yield line
            ended: Turn | None = None
            async for heard in self._waited(who, turn):
                if heard is None:
                    yield _STILL
                elif isinstance(heard, Turn):
                    ended = heard
        if ended is None:
            yield failure_line(_stopping_error())
            return
        for line in lines.ending(build_response(ended, body, ignored + found.unheard(ended.reply))):
            yield line

    async def _waited(self, who: Principal, turn: SubmittedTurn) -> AsyncGenerator[Turn | TurnProgress | None, None]:
        """Provisional text as it comes, `None` for each while of silence, then the ended turn.

        Nothing but the first two where this process stops first.
        """
        while not turn.listener.closed:
            said: asyncio.Queue[TurnProgress] = asyncio.Queue(_UNREAD)
            waiting = asyncio.create_task(self._turns.ended(who, turn, HEARTBEAT, said.put))
            try:
                async for one in _until(waiting, said):
                    if one.kind in LIVE_KINDS:
                        yield one
            finally:
                waiting.cancel()
            ended = await waiting
            yield ended
            if ended is not None:
                return

    async def _chat(self, who: Principal, body: ChatAsked) -> tuple[Question, str | None, tuple[str, ...]]:
        found = find_question(body.messages, "messages")
        named = (body.metadata or {}).get("conversation_id")
        return await self._placed(who, body.model, found, named)

    async def _input(self, who: Principal, body: ResponseAsked) -> tuple[Question, str | None, tuple[str, ...]]:
        check_one_conversation(body)
        found = find_question(body.messages(), "input")
        if body.instructions:
            found = found.wishing("instructions", body.instructions)
        named = body.conversation.id if body.conversation else None
        if body.previous_response_id is not None:
            named = (await self._turns.state(who, turn_id_of(body.previous_response_id))).conversation_id
        return await self._placed(who, body.model, found, named)

    async def _placed(
        self, who: Principal, agent: str, found: Question, named: str | None
    ) -> tuple[Question, str | None, tuple[str, ...]]:
        """The question with its conversation, and what changes nothing: a history that no conversation here has."""
        conversation = (
            named
            or await self._conversation_of_calls(who, agent, found)
            or await self._asking.conversation(who, agent, found.before)
        )
        return found, conversation, ("history",) if conversation is None and found.before else ()

    async def _conversation_of_calls(self, who: Principal, agent: str, found: Question) -> str | None:
        """The conversation of the caller's turn that asked for the calls whose results came."""
        if found.turn_of_calls is None:
            return None
        try:
            turn = await self._turns.state(who, found.turn_of_calls)
        except NotFound:
            return None
        return turn.conversation_id if turn.agent == agent else None


_UNREAD = 64
"""Lines of progress that wait for a client to read; then the turn's are read no further for a while."""


async def _until(ended: asyncio.Task[Turn | None], said: asyncio.Queue[TurnProgress]) -> AsyncGenerator[TurnProgress, None]:
    """What is said until a task has ended."""
    while True:
        getting = asyncio.create_task(said.get())
        try:
            await asyncio.wait({ended, getting}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                yield getting.result()
                continue
        finally:
            getting.cancel()
        while not said.empty():
            yield said.get_nowait()
        return


def _stopping_error() -> Unavailable:
    return Unavailable("the gateway is stopping; the turn goes on", retry_after=1)


def _or_stream(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {200: route_responses(model)[200] | _STREAM} | refusals(402, 404)


def router(
    authenticator: Authenticator,
    bus: Bus,
    turns: TurnService,
    uploads: UploadReceiver,
    streams: OpenStreams,
    wait: float,
    seconds: float,
) -> APIRouter:
    """The routes. `wait`: seconds that a whole answer is waited for; `seconds`: how long a stream may be open."""
    routes = APIRouter(prefix="/v1", route_class=enveloped_route(authenticator, WRITE), responses=ENVELOPES, tags=["openai"])
    face = OpenAIHandlers(bus, turns, uploads, wait)

    async def streamed(who: Principal, lines: AsyncGenerator[bytes, None]) -> Answer:
        await anext(lines)  # whatever is wrong with the question is told before the stream begins
        holder = who.key or ""
        return EventStream(lines, seconds, lambda: streams.opened(holder))

    @routes.get("/models", responses=route_responses(Models))
    async def list_models(who: Caller) -> Answer:
        """List the agents as models.

        Those that the caller may talk to.
        """
        return json_response(Models(data=await face.models(who)))

    @routes.get("/models/{id}", responses=route_responses(Model))
    async def get_model(id: Annotated[str, Path(description="The agent's name."), ID_FORM], who: Caller) -> Answer:
        """Get an agent as a model.

        By its name.
        """
        found = next((model for model in await face.models(who) if model.id == id), None)
        if found is None:
            raise ModelNotFound("there is no such agent", field="model")
        return json_response(found)

    @routes.post("/chat/completions", responses=_or_stream(ChatCompletion))
    async def complete_chat(body: ChatAsked, who: Caller, key: IdempotencyKey) -> Answer:
        """Answer a chat.

        The last message of the user is answered, whole or, with `stream`, in pieces. The chat goes on in the caller's
        conversation in which the agent said what it said last; else a new one is begun.
        """
        who = await authenticator.acting(who, body.user)
        if body.stream:
            return await streamed(who, face.chunks(who, body, key))
        return json_response(await face.completed(who, body, key))

    @routes.post("/responses", responses=_or_stream(Response))
    async def create_response(body: ResponseAsked, who: Caller, key: IdempotencyKey) -> Answer:
        """Create a response.

        The last message of the input is answered: whole, at once with `background`, or by events with `stream`.
        """
        who = await authenticator.acting(who, body.user)
        if body.stream:
            return await streamed(who, face.events(who, body, key))
        return json_response(await face.responded(who, body, key))

    @routes.get("/responses/{id}", responses=route_responses(Response))
    async def get_response(id: ResponseId, who: Caller) -> Answer:
        """Get a response.

        As it is now.
        """
        return json_response(build_response(await turns.state(who, turn_id_of(id))))

    @routes.post("/responses/{id}/cancel", responses=route_responses(Response) | refusals(409))
    async def cancel_response(id: ResponseId, who: Caller) -> Answer:
        """Cancel a response.

        One that has ended answers 409.
        """
        return json_response(build_response(await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=turn_id_of(id)))))

    add_routes(routes, authenticator, bus, uploads)
    return routes
