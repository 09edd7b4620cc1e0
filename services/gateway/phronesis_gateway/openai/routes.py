"""The routes of this face."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response as Answer

from phronesis_bus import Bus, ask
from phronesis_contracts import Principal, TimedOut, Unavailable
from phronesis_contracts.instructions import AGENT_LIST, ListAgents
from phronesis_contracts.orchestrator import TURN_CANCEL, Turn, TurnRef
from phronesis_gateway.answers import Id, answers, as_json
from phronesis_gateway.door import Caller, Door, IdempotencyKey
from phronesis_gateway.event_stream import EventStream
from phronesis_gateway.events import HEARTBEAT
from phronesis_gateway.limits import Streams
from phronesis_gateway.scopes import WRITE
from phronesis_gateway.submission import Submitted, Turns
from phronesis_gateway.uploads import Uploads

from .asking import Asking, ModelNotFound, Question, question
from .completions import ChatAsked, ChatCompletion, completion, failed, opening, rest
from .errors import ENVELOPES, enveloped, why
from .objects import Model, Models
from .responses import Lines, Response, ResponseAsked, one_way, response, turn_of

_STILL = b": still here\n\n"
_STREAM: dict[str, Any] = {"content": {"text/event-stream": {}}}


class Face:
    """What the routes do.

    Args:
        bus: the connected bus.
        turns: hands turns in and waits for them.
        uploads: takes in what a message itself holds.
        wait: seconds that a whole answer is waited for.
    """

    def __init__(self, bus: Bus, turns: Turns, uploads: Uploads, wait: float) -> None:
        self._bus = bus
        self._turns = turns
        self._asking = Asking(bus, turns, uploads)
        self._wait = wait

    async def models(self, who: Principal) -> tuple[Model, ...]:
        """The agents."""
        return tuple(Model(id=name) for name in (await ask(self._bus, who, AGENT_LIST, ListAgents())).agents)

    async def completed(self, who: Principal, asked: ChatAsked, key: str | None) -> ChatCompletion:
        """A chat's whole answer. Raises `TimedOut` where it is not there in time: the turn goes on."""
        found, conversation, ignored = await self._chat(who, asked)
        async with self._asking.asked(who, asked.model, found.said, conversation, key) as turn:
            ended = await self._turns.ended(who, turn, self._wait)
        if ended is None:
            raise TimedOut(f"the answer is not there yet; turn {turn.turn_id} goes on")
        if error := why(ended):
            raise error
        return completion(ended, ignored)

    async def chunks(self, who: Principal, asked: ChatAsked, key: str | None) -> AsyncGenerator[bytes, None]:
        """A chat's answer in pieces; the first is empty and comes once its turn is accepted."""
        found, conversation, ignored = await self._chat(who, asked)
        async with self._asking.asked(who, asked.model, found.said, conversation, key) as turn:
            yield b""
            first = opening(turn.turn_id, asked.model, int(time.time()))
            yield first.line()
            ended: Turn | None = None
            async for ended in self._waited(who, turn):
                if ended is None:
                    yield _STILL
        if ended is None or ended.reply is None:
            yield failed((ended and why(ended)) or _away())
            return
        usage = bool(asked.stream_options and asked.stream_options.include_usage)
        for line in rest(ended, first, ignored, usage=usage):
            yield line

    async def responded(self, who: Principal, asked: ResponseAsked, key: str | None) -> Response:
        """A response: ended where that comes in time, or as it is then; at once where it is for the background."""
        found, conversation, ignored = await self._input(who, asked)
        async with self._asking.asked(who, asked.model, found.said, conversation, key) as turn:
            ended = None if asked.background else await self._turns.ended(who, turn, self._wait)
        return response(ended or await self._turns.state(who, turn.turn_id), asked, ignored)

    async def events(self, who: Principal, asked: ResponseAsked, key: str | None) -> AsyncGenerator[bytes, None]:
        """A response's events; the first line is empty and comes once its turn is accepted."""
        found, conversation, ignored = await self._input(who, asked)
        lines = Lines()
        async with self._asking.asked(who, asked.model, found.said, conversation, key) as turn:
            yield b""
            for line in lines.opening(response(await self._turns.state(who, turn.turn_id), asked, ignored)):
                yield line
            ended: Turn | None = None
            async for ended in self._waited(who, turn):
                if ended is None:
                    yield _STILL
        if ended is None:
            yield failed(_away())
            return
        for line in lines.ending(response(ended, asked, ignored)):
            yield line

    async def _waited(self, who: Principal, turn: Submitted) -> AsyncGenerator[Turn | None, None]:
        """`None` for each while of silence, then the ended turn; only `None` where this process stops first."""
        while not turn.ear.closed:
            ended = await self._turns.ended(who, turn, HEARTBEAT)
            yield ended
            if ended is not None:
                return

    async def _chat(self, who: Principal, asked: ChatAsked) -> tuple[Question, str | None, tuple[str, ...]]:
        found = question(asked.messages, "messages")
        named = (asked.metadata or {}).get("conversation_id")
        return await self._placed(who, asked.model, found, named, found.ignored)

    async def _input(self, who: Principal, asked: ResponseAsked) -> tuple[Question, str | None, tuple[str, ...]]:
        one_way(asked)
        found = question(asked.messages(), "input")
        ignored = found.ignored + (("instructions",) if asked.instructions else ())
        named = asked.conversation.id if asked.conversation else None
        if asked.previous_response_id is not None:
            named = (await self._turns.state(who, turn_of(asked.previous_response_id))).conversation_id
        return await self._placed(who, asked.model, found, named, ignored)

    async def _placed(
        self, who: Principal, agent: str, found: Question, named: str | None, ignored: tuple[str, ...]
    ) -> tuple[Question, str | None, tuple[str, ...]]:
        """The question with its conversation, and what changes nothing: also a history that no conversation here has."""
        conversation = named or await self._asking.conversation(who, agent, found.before)
        lost = ("history",) if conversation is None and found.before else ()
        return found, conversation, ignored + lost


def _away() -> Unavailable:
    return Unavailable("the gateway is stopping; the turn goes on", retry_after=1)


def _or_stream(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {200: answers(model)[200] | _STREAM}


def router(door: Door, bus: Bus, turns: Turns, uploads: Uploads, streams: Streams, wait: float, seconds: float) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        turns: hands turns in and waits for them.
        uploads: takes in what a message itself holds.
        streams: counts open streams.
        wait: seconds that a whole answer is waited for.
        seconds: how long a stream may be open.
    """
    routes = APIRouter(prefix="/v1", route_class=enveloped(door, WRITE), responses=ENVELOPES, tags=["openai"])
    face = Face(bus, turns, uploads, wait)

    async def streamed(who: Principal, lines: AsyncGenerator[bytes, None]) -> Answer:
        await anext(lines)  # whatever is wrong with the question is told before the stream begins
        holder = who.key or ""
        return EventStream(lines, seconds, lambda: streams.opened(holder))

    @routes.get("/models", responses=answers(Models))
    async def list_models(who: Caller) -> Answer:
        """The agents, as models."""
        return as_json(Models(data=await face.models(who)))

    @routes.get("/models/{id}", responses=answers(Model))
    async def get_model(id: Id, who: Caller) -> Answer:
        """One agent, as a model."""
        found = next((model for model in await face.models(who) if model.id == id), None)
        if found is None:
            raise ModelNotFound("there is no such agent", field="model")
        return as_json(found)

    @routes.post("/chat/completions", responses=_or_stream(ChatCompletion))
    async def complete_chat(asked: ChatAsked, who: Caller, key: IdempotencyKey) -> Answer:
        """Answer the last message of a chat, whole or, with `stream`, in pieces.

        The chat goes on in the caller's conversation in which the agent said what it said last; else a new one is begun.
        """
        if asked.stream:
            return await streamed(who, face.chunks(who, asked, key))
        return as_json(await face.completed(who, asked, key))

    @routes.post("/responses", responses=_or_stream(Response))
    async def create_response(asked: ResponseAsked, who: Caller, key: IdempotencyKey) -> Answer:
        """Answer an input, whole, at once for the background, or, with `stream`, by events."""
        if asked.stream:
            return await streamed(who, face.events(who, asked, key))
        return as_json(await face.responded(who, asked, key))

    @routes.get("/responses/{id}", responses=answers(Response))
    async def get_response(id: Id, who: Caller) -> Answer:
        """A response as it is now."""
        return as_json(response(await turns.state(who, turn_of(id))))

    @routes.post("/responses/{id}/cancel", responses=answers(Response))
    async def cancel_response(id: Id, who: Caller) -> Answer:
        """Cancel a response that has not ended."""
        return as_json(response(await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=turn_of(id)))))

    return routes
