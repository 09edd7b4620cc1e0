"""The console's routes. Each asks the bus as the API's routes do, for the person whom the cookie names."""

from __future__ import annotations

from typing import Annotated

import htpy as h
from fastapi import APIRouter, Header, Request
from starlette.responses import RedirectResponse, Response

from phronesis_bus import Bus, Watch, ask
from phronesis_contracts import ServiceError, TurnEnded
from phronesis_contracts.orchestrator import (
    TURN_CANCEL,
    TurnProgress,
    TurnRef,
)
from phronesis_gateway.answers import Id
from phronesis_gateway.door import Door, IdempotencyKey, StrictRequest
from phronesis_gateway.event_stream import EventStream
from phronesis_gateway.events import Events, last_seen
from phronesis_gateway.limits import Streams
from phronesis_gateway.messages import MessageGiven
from phronesis_gateway.offers import Offers
from phronesis_gateway.submission import Turns
from phronesis_gateway.traces import Traces

from . import constitution, conversations, page
from .assets import asset
from .conversations import PATH
from .entrance import Person, as_html, entered, problem_of
from .errors import fault
from .session import Sessions, from_own_page
from .trace_view import trace_view


def router(
    door: Door,
    bus: Bus,
    turns: Turns,
    watch: Watch[TurnProgress],
    streams: Streams,
    seconds: float,
    offers: Offers,
) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus; what signs its principals also signs sessions.
        turns: hands turns in and reads them.
        watch: hears and reads the progress of turns.
        streams: counts open streams.
        seconds: how long a stream may be open.
        offers: what each caller may call.
    """
    sessions = Sessions(door, bus.settings.signing_key_file, PATH)
    routes = APIRouter(include_in_schema=False)
    routes.include_router(_open(sessions))
    routes.include_router(conversations.router(sessions, bus, turns))
    routes.include_router(constitution.router(sessions, bus, offers))
    routes.include_router(_parts(sessions, bus, turns))
    routes.include_router(_streamed(sessions, turns, watch, streams, seconds))
    return routes


def _open(sessions: Sessions) -> APIRouter:
    """What nobody has to be signed in for."""
    routes = APIRouter()

    @routes.post(PATH + "/sign-in")
    async def sign_in(request: Request) -> Response:
        answer = RedirectResponse(PATH, 303)
        try:
            from_own_page(request.headers)
            await sessions.begin(StrictRequest(request.scope, request.receive), answer)
        except ServiceError as error:
            return as_html(page.sign_in(fault(problem_of(error))), error.status)
        return answer

    @routes.post(PATH + "/sign-out")
    async def sign_out(request: Request) -> Response:
        answer = RedirectResponse(PATH, 303)
        try:
            from_own_page(request.headers)
        except ServiceError as error:
            return as_html(page.sign_in(fault(problem_of(error))), error.status)
        sessions.end(answer)
        return answer

    @routes.get(PATH + "/assets/{name}")
    async def get_asset(name: str) -> Response:
        return asset(name)

    return routes


def _parts(sessions: Sessions, bus: Bus, turns: Turns) -> APIRouter:
    """Parts of a page, which its script asks for."""
    routes = APIRouter(route_class=entered(sessions, fault))

    @routes.get(PATH + "/conversations")
    async def list_conversations(who: Person) -> Response:
        return as_html(page.conversations(await conversations.listed(bus, who)))

    @routes.post(PATH + "/messages")
    async def send_message(message: MessageGiven, who: Person, key: IdempotencyKey) -> Response:
        async with turns.submitted(who, message, key) as turn:
            state = await turns.state(who, turn.turn_id)
        return as_html(h.fragment[page.said(message.current_message_text or ""), page.turn_view(state)], 201)

    @routes.get(PATH + "/turns/{id}")
    async def get_turn(id: Id, who: Person) -> Response:
        return as_html(page.turn_view(await turns.state(who, id)))

    @routes.post(PATH + "/turns/{id}/cancel")
    async def cancel_turn(id: Id, who: Person) -> Response:
        try:
            state = await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=id))
        except TurnEnded:
            state = await turns.state(who, id)
        return as_html(page.turn_view(state))

    @routes.get(PATH + "/turns/{id}/trace")
    async def get_trace(id: Id, who: Person) -> Response:
        turn = await turns.state(who, id)
        return as_html(trace_view(await Traces(bus).of(who, id, turn.trace_id)))

    return routes


def _streamed(sessions: Sessions, turns: Turns, watch: Watch[TurnProgress], streams: Streams, seconds: float) -> APIRouter:
    routes = APIRouter(route_class=entered(sessions, fault))

    @routes.get(PATH + "/turns/{id}/events")
    async def watch_turn(
        id: Id, who: Person, last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$")] = None
    ) -> Response:
        assert who.key is not None
        holder, seen = who.key, last_seen(last_event_id)
        await turns.state(who, id)
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    return routes
